/* A device that takes everything and computes nothing, so that CuPy compiles and launches as it would on a real one.

   Memory is the host's; copies are made; what is launched is noted and not run. Functions whose names
   begin with stub_ stand for CUDA's runtime, which is part of CuPy's extension modules: stub_device.py writes jumps to
   them over it. The others are the driver's, as this library is loaded by its name. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int stub_capability = 90;         /* 10 x major + minor */
int stub_version = 13000;         /* of CUDA */
int stub_fill = 0;                /* what new memory holds, in each 64 bits */
int stub_refusals = 0;            /* so many modules are refused */
int stub_refusal = 209;           /* with this status: CUDA_ERROR_NO_BINARY_FOR_GPU */
int stub_modules = 0;             /* loaded so far */
int stub_launches = 0;            /* so far, also those of code that came compiled with CuPy */
int stub_slots = 0;               /* parameters that the next launch has */
int stub_devices = 1;             /* how many there are */
int stub_device = 0;              /* the current one */
int stub_failure = 0;             /* status of counting devices, if it fails */
uint64_t stub_free = (uint64_t)1 << 33; /* free memory of a device */
const char *stub_name = "stub";   /* its name */
int stub_owner = 0;               /* the device of all memory */
int stub_memory = 2;              /* its type: 0 is unknown to CUDA, 2 is a device's */
int stub_pages = 0;               /* status of page-locking */
void *stub_awaited = 0;           /* the last event that a stream was told to wait for */
uint64_t stub_parameters[64];     /* those of the last launch */
uint32_t stub_shape[2];           /* its blocks, and threads in a block */
const char *stub_function = "";   /* its name */

typedef int status;

status stub_anything(void) { return 0; }

/* ------------------------------------------------------------------------------------------------ devices */

status stub_cudaGetDevice(int *device) { *device = stub_device; return 0; }
status stub_cudaSetDevice(int device) { stub_device = device; return 0; }
status stub_cudaGetDeviceCount(int *number) { *number = stub_devices; return stub_failure; }
status stub_cudaRuntimeGetVersion(int *version) { *version = stub_version; return 0; }
status stub_cudaDriverGetVersion(int *version) { *version = stub_version; return 0; }
status stub_cudaDeviceCanAccessPeer(int *can, int one, int other) { *can = 0; return 0; }
const char *stub_cudaGetErrorName(int error) { return "cudaError"; }
const char *stub_cudaGetErrorString(int error) { return "an error of the stub"; }

status stub_cudaDeviceGetAttribute(int *value, int attribute, int device) {
    switch (attribute) { /* enum cudaDeviceAttr */
    case 1: *value = 1024; break;           /* threads in a block */
    case 2: case 3: *value = 1024; break;
    case 4: *value = 64; break;
    case 5: *value = 2147483647; break;     /* blocks in a grid */
    case 6: case 7: *value = 65535; break;
    case 8: *value = 49152; break;          /* shared memory of a block */
    case 10: *value = 32; break;            /* threads in a warp */
    case 12: *value = 65536; break;         /* registers of a block */
    case 16: *value = 132; break;           /* multiprocessors */
    case 39: *value = 2048; break;          /* threads of a multiprocessor */
    case 75: *value = stub_capability / 10; break;
    case 76: *value = stub_capability % 10; break;
    case 81: *value = 233472; break;        /* shared memory of a multiprocessor */
    case 97: *value = 232448; break;        /* and of a block that asks for it */
    case 106: *value = 32; break;           /* blocks of a multiprocessor */
    default: *value = 0;
    }
    return 0;
}

status stub_cudaGetDeviceProperties(char *properties, int device) {
    strcpy(properties, stub_name);                           /* name[256], uuid, luid and its mask */
    *(size_t *)(properties + 288) = (size_t)1 << 34;         /* totalGlobalMem */
    *(size_t *)(properties + 296) = 49152;                   /* sharedMemPerBlock */
    *(int *)(properties + 304) = 65536;                      /* regsPerBlock */
    *(int *)(properties + 308) = 32;                         /* warpSize */
    *(int *)(properties + 320) = 1024;                       /* maxThreadsPerBlock */
    return 0;
}
status stub_cudaGetDeviceProperties_v2(char *properties, int device) {
    return stub_cudaGetDeviceProperties(properties, device);
}

/* ------------------------------------------------------------------------------------------------ memory */

static status allocated(void **pointer, size_t size) {
    if (posix_memalign(pointer, 512, size ? size : 1)) return 2;
    memset(*pointer, 0, size);
    for (size_t i = 0; i < size / 8; i++) ((uint64_t *)*pointer)[i] = stub_fill;
    return 0;
}
status stub_cudaMalloc(void **pointer, size_t size) { return allocated(pointer, size); }
status stub_cudaMallocAsync(void **pointer, size_t size, void *stream) { return allocated(pointer, size); }
status stub_cudaMallocHost(void **pointer, size_t size) { return allocated(pointer, size); }
status stub_cudaHostAlloc(void **pointer, size_t size, unsigned flags) {
    return stub_pages ? stub_pages : allocated(pointer, size);
}
status stub_cudaFree(void *pointer) { free(pointer); return 0; }
status stub_cudaFreeAsync(void *pointer, void *stream) { free(pointer); return 0; }
status stub_cudaFreeHost(void *pointer) { free(pointer); return 0; }
status stub_cudaMemGetInfo(size_t *available, size_t *total) {
    *available = stub_free, *total = 2 * stub_free;
    return 0;
}
status stub_cudaMemcpy(void *to, const void *from, size_t size, int kind) { memmove(to, from, size); return 0; }
status stub_cudaMemcpyAsync(void *to, const void *from, size_t size, int kind, void *stream) {
    memmove(to, from, size);
    return 0;
}
status stub_cudaMemcpyPeerAsync(void *to, int there, const void *from, int here, size_t size, void *stream) {
    memmove(to, from, size);
    return 0;
}
status stub_cudaMemset(void *at, int value, size_t size) { memset(at, value, size); return 0; }
status stub_cudaMemsetAsync(void *at, int value, size_t size, void *stream) { memset(at, value, size); return 0; }
status stub_cudaPointerGetAttributes(void **attributes, const void *pointer) {
    ((int *)attributes)[0] = stub_memory, ((int *)attributes)[1] = stub_owner;
    attributes[1] = attributes[2] = (void *)pointer;
    return 0;
}

/* ------------------------------------------------------------------------------------------------ streams, launches */

static int somewhere;
status stub_cudaStreamCreate(void **stream) { *stream = &somewhere; return 0; }
status stub_cudaStreamCreateWithFlags(void **stream, unsigned flags) { *stream = &somewhere; return 0; }
status stub_cudaStreamIsCapturing(void *stream, int *capturing) { *capturing = 0; return 0; }
status stub_cudaEventCreate(void **event) { *event = &somewhere; return 0; }
status stub_cudaEventCreateWithFlags(void **event, unsigned flags) { *event = &somewhere; return 0; }
status stub_cudaStreamWaitEvent(void *stream, void *event, unsigned flags) { stub_awaited = event; return 0; }
status stub_cudaEventElapsedTime(float *ms, void *start, void *stop) { *ms = 0; return 0; }

status stub_cudaFuncGetAttributes(void *attributes, const void *function) {
    memset(attributes, 0, 40); /* three sizes of memory; then */
    int *rest = (int *)((size_t *)attributes + 3);
    rest[0] = 1024, rest[1] = 32, rest[2] = 80, rest[3] = stub_capability; /* threads, registers, PTX, binary */
    return 0;
}
status stub_cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks) { *blocks = 4; return 0; }
status stub_cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks) { *blocks = 4; return 0; }
status stub_cudaLaunchKernel(void) { stub_launches++; return 0; }
status stub_cudaLaunchKernelExC(void) { stub_launches++; return 0; }

/* ------------------------------------------------------------------------------------------------ the driver */

status cuInit(unsigned flags) { return 0; }
status cuGetExportTable(const void **table, const void *which) { return 801; } /* NVRTC goes on without */
status cuDriverGetVersion(int *version) { *version = stub_version; return 0; }
status cuDeviceGetCount(int *number) { *number = stub_devices; return 0; }
status cuCtxGetCurrent(void **context) { *context = &somewhere; return 0; }
status cuGetErrorName(int error, const char **name) {
    *name = error == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_OF_THE_STUB";
    return 0;
}
status cuGetErrorString(int error, const char **text) { *text = "an error of the stub"; return 0; }

status cuModuleLoadData(void **module, const void *image) {
    if (stub_refusals > 0) {
        stub_refusals--;
        return stub_refusal;
    }
    stub_modules++;
    *module = (void *)image;
    return 0;
}
status cuModuleLoadDataEx(void **module, const void *image) { return cuModuleLoadData(module, image); }
status cuModuleUnload(void *module) { return 0; }
status cuModuleGetFunction(void **function, void *module, const char *name) { *function = strdup(name); return 0; }
status cuModuleGetGlobal_v2(uintptr_t *pointer, size_t *size) { return 500; } /* CUDA_ERROR_NOT_FOUND */
status cuModuleGetGlobal(uintptr_t *pointer, size_t *size) { return 500; }
status cuFuncGetAttribute(int *value, int attribute, void *function) { *value = attribute ? 0 : 1024; return 0; }
status cuFuncSetAttribute(void *function, int attribute, int value) { return 0; }
status cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks) { *blocks = 4; return 0; }
status cuOccupancyMaxPotentialBlockSize(int *grid, int *block) { *grid = 132, *block = 256; return 0; }

status cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned block_x, unsigned block_y,
                      unsigned block_z, unsigned shared, void *stream, void **parameters, void **extra) {
    stub_launches++;
    stub_function = function;
    stub_shape[0] = x, stub_shape[1] = block_x;
    for (int i = 0; i < stub_slots && i < 64; i++) stub_parameters[i] = *(uint64_t *)parameters[i];
    return 0;
}
