/* Runs a kernel's threads on the CPU: one fiber for each thread of a block, blocks one after another.

   A fiber runs until it comes to a barrier or its end; in random order it may also stop before any store or atomic, so
   that a read, a change and a write that should have been one are torn apart. Every load and store is checked to lie in
   an array that the kernel was given, in its shared memory or on its own stack.

   hostir.py inserts the calls to the functions whose names begin with cuda_, and calls run_grid. */

#define _GNU_SOURCE
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

enum order { LANE, RANDOM, REVERSED };
enum failure { NONE, OUT_OF_MEMORY, DIVERGENT_BARRIER, MISSED_BARRIER, BAD_LOAD, BAD_STORE, TOO_LONG };

typedef struct { char *start; uint64_t size; } Region;

typedef struct {
    int failure;      /* one of enum failure, and where: */
    int32_t block, thread, other;
    uint64_t address, size;
} Report;

typedef struct {
    ucontext_t beginning;
    jmp_buf state;
    char *stack;
    int started, ended, site;  /* site: the barrier at which it waits, 0 for none */
} Fiber;

#define STACK ((size_t)64 << 10)
#define POISON 0xA5

static Fiber *fibers, *current;
static jmp_buf scheduler;
static Report report;
static void (*kernel)(uint64_t *);
static uint64_t *kernel_arguments;
static Region *regions;
static int num_regions, last_region;
static int32_t num_blocks, num_threads, block, thread, num_ended, num_waiting, num_true, num_true_at_last;
static uint64_t state, accesses_left;
static enum order order;

static uint64_t draw(void) {  /* SplitMix64 */
    uint64_t z = (state += 0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
}

static void suspend(void) {
    if (!_setjmp(current->state)) _longjmp(scheduler, 1);
}

static void fail(enum failure what, uint64_t address, uint64_t size, int32_t other) {
    if (!report.failure) report = (Report){what, block, thread, other, address, size};
    suspend();  /* for ever: the scheduler ends the launch */
}

static void live(void) {
    for (;;) {
        kernel(kernel_arguments);
        current->ended = 1;
        suspend();
    }
}

static void resume(int t) {
    thread = t;
    current = &fibers[t];
    if (_setjmp(scheduler)) return;
    if (current->started) _longjmp(current->state, 1);
    current->started = 1;
    setcontext(&current->beginning);
}

/* ---------------------------------------------------------------------------------------- what kernels call */

int32_t cuda_tid(void) { return thread; }
int32_t cuda_ctaid(void) { return block; }
int32_t cuda_ntid(void) { return num_threads; }
int32_t cuda_nctaid(void) { return num_blocks; }
int32_t cuda_one(void) { return 1; }
int32_t cuda_zero(void) { return 0; }
int32_t cuda_laneid(void) { return thread & 31; }
int32_t cuda_warpsize(void) { return 32; }
void cuda_fence(void) {}

static int32_t barrier(int site, int predicate) {
    num_true += predicate != 0;
    num_waiting++;
    current->site = site;
    while (current->site) suspend();
    return num_true_at_last;
}
void cuda_barrier(int32_t site) { barrier(site, 0); }
int32_t cuda_barrier_count(int32_t site, int32_t predicate) { return barrier(site, predicate); }
int32_t cuda_barrier_and(int32_t site, int32_t predicate) { return barrier(site, predicate) == num_threads ? -1 : 0; }
int32_t cuda_barrier_or(int32_t site, int32_t predicate) { return barrier(site, predicate) ? -1 : 0; }

static int within(char *address, uint64_t size, char *start, uint64_t length) {
    return address >= start && size <= length && (uint64_t)(address - start) <= length - size;
}

void cuda_access(char *address, uint64_t size, int32_t stores) {
    if (!accesses_left--) fail(TOO_LONG, 0, 0, 0);
    if (within(address, size, current->stack, STACK)) return;
    if (!num_regions || !within(address, size, regions[last_region].start, regions[last_region].size)) {
        int i = 0;
        while (i < num_regions && !within(address, size, regions[i].start, regions[i].size)) i++;
        if (i == num_regions) fail(stores ? BAD_STORE : BAD_LOAD, (uint64_t)address, size, 0);
        last_region = i;
    }
    if (stores && order == RANDOM && !(draw() & 3)) suspend();
}

/* -------------------------------------------------------------------------------------------- what Python calls */

static void shuffle(int32_t *turns) {
    for (int32_t i = num_threads - 1; i > 0; i--) {
        int32_t j = draw() % (uint64_t)(i + 1), t = turns[i];
        turns[i] = turns[j];
        turns[j] = t;
    }
}

static void release(void) {
    int site = 0, other = 0;
    for (int t = 0; t < num_threads; t++) {
        thread = t;
        if (fibers[t].ended) { report = (Report){MISSED_BARRIER, block, t, 0, 0, 0}; return; }
        if (site && fibers[t].site != site) { report = (Report){DIVERGENT_BARRIER, block, t, other, 0, 0}; return; }
        site = fibers[t].site, other = t;
    }
    for (int t = 0; t < num_threads; t++) fibers[t].site = 0;
    num_true_at_last = num_true;
    num_waiting = num_true = 0;
}

static void run_block(int32_t *turns) {
    for (int t = 0; t < num_threads; t++) {
        fibers[t].ended = fibers[t].site = 0;
        turns[t] = order == REVERSED ? num_threads - 1 - t : t;
    }
    num_ended = num_waiting = num_true = 0;
    while (num_ended < num_threads && !report.failure) {
        if (order == RANDOM) shuffle(turns);
        for (int i = 0; i < num_threads && !report.failure; i++) {
            Fiber *fiber = &fibers[turns[i]];
            if (fiber->ended || fiber->site) continue;
            resume(turns[i]);
            num_ended += fiber->ended;
        }
        if (!report.failure && num_waiting && num_waiting + num_ended == num_threads) release();
    }
}

/* Run entry(arguments) as num_blocks_ blocks of num_threads_ threads. The first num_shared of the regions are shared
   memory, which every block finds poisoned. At most `limit` loads and stores. */
void run_grid(void (*entry)(uint64_t *), uint64_t *arguments, int32_t num_blocks_, int32_t num_threads_, int32_t order_,
              uint64_t seed, uint64_t limit, Region *regions_, int32_t num_regions_, int32_t num_shared, Report *result) {
    kernel = entry, kernel_arguments = arguments, num_blocks = num_blocks_, num_threads = num_threads_;
    order = order_, state = seed, accesses_left = limit, regions = regions_, num_regions = num_regions_;
    last_region = 0;
    report = (Report){NONE, 0, 0, 0, 0, 0};
    fibers = calloc(num_threads, sizeof *fibers);
    int32_t *turns = calloc(num_threads, sizeof *turns);
    int32_t *places = calloc(num_blocks, sizeof *places);
    char *stacks = mmap(0, num_threads * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (!fibers || !turns || !places || stacks == MAP_FAILED) {
        report.failure = OUT_OF_MEMORY;
    } else {
        for (int t = 0; t < num_threads; t++) {
            Fiber *fiber = &fibers[t];
            fiber->stack = stacks + t * STACK;
            getcontext(&fiber->beginning);
            fiber->beginning.uc_stack.ss_sp = fiber->stack;
            fiber->beginning.uc_stack.ss_size = STACK;
            makecontext(&fiber->beginning, live, 0);
        }
        for (int32_t b = 0; b < num_blocks; b++) places[b] = order == REVERSED ? num_blocks - 1 - b : b;
        if (order == RANDOM)
            for (int32_t i = num_blocks - 1; i > 0; i--) {
                int32_t j = draw() % (uint64_t)(i + 1), b = places[i];
                places[i] = places[j];
                places[j] = b;
            }
        for (int32_t i = 0; i < num_blocks && !report.failure; i++) {
            block = places[i];
            for (int r = 0; r < num_shared; r++) memset(regions[r].start, POISON, regions[r].size);
            run_block(turns);
        }
    }
    *result = report;
    if (stacks != MAP_FAILED) munmap(stacks, num_threads * STACK);
    free(fibers), free(turns), free(places);
}
