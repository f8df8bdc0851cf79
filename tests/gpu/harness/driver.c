/* A driver that says success and records launches: as much of libcuda as CuPy needs to load it and to launch a kernel.

   CuPy's allocations, copies and own kernels go through the CUDA runtime, which is linked into CuPy and asks the driver
   for functions that NVIDIA does not document; they cannot be had here.
*/

#include <stdint.h>

#define MOST 128

static uint64_t launches, handle, stream, slots[MOST];
static uint32_t blocks, threads;
static int num_slots;

int cuInit(unsigned flags) { return 0; }
int cuDriverGetVersion(int *version) { *version = 13000; return 0; }
int cuGetErrorName(int status, const char **text) { *text = "status"; return 0; }
int cuGetErrorString(int status, const char **text) { *text = "of no driver"; return 0; }

int cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned block, unsigned by, unsigned bz,
                   unsigned shared, void *on, void **parameters, void **extra)
{
    launches++;
    handle = (uint64_t)function;
    stream = (uint64_t)on;
    blocks = x * y * z;
    threads = block * by * bz;
    for (int i = 0; i < num_slots; i++)
        slots[i] = *(uint64_t *)parameters[i];
    return 0;
}

/* How many parameters the next launches have, and what the last one was given. */
void expect(int number) { num_slots = number < MOST ? number : MOST; }
uint64_t last(uint64_t *found)
{
    found[0] = launches, found[1] = handle, found[2] = stream, found[3] = blocks, found[4] = threads;
    for (int i = 0; i < num_slots; i++)
        found[5 + i] = slots[i];
    return launches;
}
