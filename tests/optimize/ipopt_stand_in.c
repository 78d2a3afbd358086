/* A stand-in for IPOPT's library: its C interface, and Newton steps for functions whose Hessian is diagonal. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

typedef int (*value_t)(int, double *, int, double *, void *);
typedef int (*constraints_t)(int, double *, int, int, double *, void *);
typedef int (*gradient_t)(int, double *, int, double *, void *);
typedef int (*jacobian_t)(int, double *, int, int, int, int *, int *, double *, void *);
typedef int (*hessian_t)(int, double *, int, double, int, double *, int, int, int *, int *, double *, void *);
typedef int (*intermediate_t)(int, int, double, double, double, double, double, double, double, double, int, void *);

typedef struct {
    int n, m, first, second, most, interrupts, approximates;
    double *limits[4];
    value_t value;
    constraints_t constraints;
    gradient_t gradient;
    jacobian_t jacobian;
    hessian_t hessian;
    intermediate_t intermediate;
} problem_t;

double _ZN5Ipopt9IpBlasDotEiPKdiS1_i(int n, const double *x, int dx, const double *y, int dy) { return 0.0; }

static double *copied(const double *from, int count) {
    double *to = malloc(sizeof(double) * (count + 1));
    memcpy(to, from, sizeof(double) * count);
    return to;
}

void *CreateIpoptProblem(int n, double *xl, double *xu, int m, double *gl, double *gu, int first, int second, int style,
                         value_t value, constraints_t constraints, gradient_t gradient, jacobian_t jacobian,
                         hessian_t hessian) {
    if (n < 1 || style != 0) return NULL;
    problem_t *p = calloc(1, sizeof(problem_t));
    p->n = n, p->m = m, p->first = first, p->second = second, p->most = 20;
    p->limits[0] = copied(xl, n), p->limits[1] = copied(xu, n), p->limits[2] = copied(gl, m), p->limits[3] = copied(gu, m);
    p->value = value, p->constraints = constraints, p->gradient = gradient, p->jacobian = jacobian, p->hessian = hessian;
    return p;
}

void FreeIpoptProblem(problem_t *p) {
    for (int k = 0; k < 4; k++) free(p->limits[k]);
    free(p);
}

int SetIntermediateCallback(problem_t *p, intermediate_t call) { p->intermediate = call; return 1; }

/* Results are bool since IPOPT 3.14: what stands above the lowest byte means nothing. */
int AddIpoptStrOption(problem_t *p, char *name, char *value) {
    if (!strcmp(name, "interrupted")) { p->interrupts = 1; return 0x7701; }
    if (!strcmp(name, "hessian_approximation")) { p->approximates = 1; return 0x7701; }
    return strcmp(name, "sb") ? 0x7700 : 0x7701;
}
int AddIpoptIntOption(problem_t *p, char *name, int value) {
    if (!strcmp(name, "max_iter")) { p->most = value; return 0x7701; }
    return strcmp(name, "print_level") ? 0x7700 : 0x7701;
}
int AddIpoptNumOption(problem_t *p, char *name, double value) { return strcmp(name, "tol") || value <= 0.0 ? 0x7700 : 0x7701; }

int IpoptSolve(problem_t *p, double *x, double *g, double *value, double *mg, double *low, double *high, void *data) {
    int n = p->n, m = p->m, status = -1;
    int *rows = calloc(p->first + p->second + 1, sizeof(int)), *columns = calloc(p->first + p->second + 1, sizeof(int));
    double *slope = calloc(n, sizeof(double)), *diagonal = calloc(n, sizeof(double));
    double *first = calloc(p->first + 1, sizeof(double)), *second = calloc(p->second + 1, sizeof(double));
    for (int k = 0; k < m; k++) mg[k] = 0.0;
    p->jacobian(n, x, 1, m, p->first, rows, columns, NULL, data);
    if (!p->approximates) p->hessian(n, x, 1, 1.0, m, mg, 1, p->second, rows + p->first, columns + p->first, NULL, data);
    for (int turn = 0; turn <= p->most; turn++) {
        int done = p->value(n, x, 1, value, data) && p->gradient(n, x, 0, slope, data) && p->constraints(n, x, 0, m, g, data) &&
                   p->jacobian(n, x, 0, m, p->first, NULL, NULL, first, data);
        if (done && !p->approximates) done = p->hessian(n, x, 0, 1.0, m, mg, 1, p->second, NULL, NULL, second, data);
        if (!p->intermediate(0, turn, *value, 0, 0, 0, 0, 0, 0, 0, 0, data)) { status = 5; break; }
        if (!done) { status = -13; break; }
        if (p->interrupts && turn == 1) raise(SIGINT);
        double far = 0.0;
        for (int k = 0; k < n; k++) diagonal[k] = p->approximates ? 2.0 : 0.0;
        for (int k = 0; k < p->second && !p->approximates; k++)
            if (rows[p->first + k] == columns[p->first + k]) diagonal[rows[p->first + k]] += second[k];
        for (int k = 0; k < n; k++) {
            double to = x[k] - slope[k] / diagonal[k];
            if (to < p->limits[0][k]) to = p->limits[0][k];
            if (to > p->limits[1][k]) to = p->limits[1][k];
            far += (to - x[k]) * (to - x[k]);
            x[k] = to;
        }
        if (far < 1e-20) { status = 0; break; }
    }
    for (int k = 0; k < n; k++) low[k] = slope[k] > 0.0 ? slope[k] : 0.0, high[k] = slope[k] < 0.0 ? -slope[k] : 0.0;
    /* As multipliers of constraints: products of the Jacobian with ones. */
    for (int k = 0; k < p->first; k++) mg[rows[k]] += first[k];
    free(rows), free(columns), free(slope), free(diagonal), free(first), free(second);
    return status;
}
