/* NVIDIA's management library as far as agents ask it, by nvml.h: two GPUs that a test may spoil. */

#include <stdio.h>
#include <string.h>

#define MOST 4

typedef struct { unsigned long long total, free, used; } memory;
typedef struct { unsigned int gpu, memory; } utilization;
typedef struct {
    char busIdLegacy[16];
    unsigned int domain, bus, device, pciDeviceId, pciSubSystemId;
    char busId[32];
} pci;
typedef struct { unsigned int pid; unsigned long long usedGpuMemory; unsigned int gi, ci; } process;
typedef struct { unsigned int pid; unsigned long long timeStamp; unsigned int sm, mem, enc, dec; } sample;
typedef struct { void *device; unsigned long long type, data; unsigned int gi, ci; } event;

static int handles[MOST] = {0, 1, 2, 3};
static unsigned int count = 2, pid = 7, busy = 40;
static int lost = -1, silent = -1, down = 0;
static unsigned long long now = 1000;
static event waiting[16];
static int events = 0;
static int begun = 0;

void fake_reset(void) { count = 2; pid = 7; busy = 40; lost = silent = -1; down = events = 0; now = 1000; }
void fake_count(unsigned int n) { count = n; }
void fake_lost(int index) { lost = index; }
void fake_silent(int index) { silent = index; }
void fake_down(int yes) { down = yes; }
void fake_busy(unsigned int percent) { busy = percent; now += 1000; }
void fake_xid(int index, unsigned long long number) {
    event one = {index < 0 ? NULL : &handles[index], 8, number, 0, 0};
    waiting[events++] = one;
}
int fake_begun(void) { return begun; }

static int index_of(void *device) { return *(int *)device; }
static int say(char *to, unsigned int length, const char *text) {
    return (unsigned int)snprintf(to, length, "%s", text) < length ? 0 : 7;
}

int nvmlInit_v2(void) { if (down) return 9; begun++; return 0; }
int nvmlShutdown(void) { begun--; return 0; }
const char *nvmlErrorString(int result) {
    return result == 9 ? "Driver Not Loaded" : result == 15 ? "GPU is lost" : "Unknown Error";
}
int nvmlSystemGetDriverVersion(char *text, unsigned int length) { return say(text, length, "535.104.05"); }
int nvmlDeviceGetCount_v2(unsigned int *n) { *n = count; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **device) {
    if (index >= count) return 2;
    if ((int)index == lost) return 15;
    *device = &handles[index];
    return 0;
}
int nvmlDeviceGetUUID(void *device, char *text, unsigned int length) {
    return say(text, length, index_of(device) ? "GPU-b" : "GPU-a");
}
int nvmlDeviceGetMinorNumber(void *device, unsigned int *minor) { *minor = 1 - index_of(device); return 0; }
int nvmlDeviceGetName(void *device, char *text, unsigned int length) {
    (void)device;
    return say(text, length, "NVIDIA A100 SXM4 80GB");
}
int nvmlDeviceGetMemoryInfo(void *device, memory *found) {
    (void)device;
    found->total = 80ULL << 30; found->used = 20ULL << 30; found->free = 60ULL << 30;
    return 0;
}
int nvmlDeviceGetPciInfo_v3(void *device, pci *found) {
    memset(found, 0, sizeof *found);
    snprintf(found->busIdLegacy, 16, "0000:3%c:00.0", index_of(device) ? 'D' : 'B');
    snprintf(found->busId, 32, "00000000:3%c:00.0", index_of(device) ? 'D' : 'B');
    return 0;
}
int nvmlDeviceGetUtilizationRates(void *device, utilization *found) {
    (void)device;
    found->gpu = busy; found->memory = 1;
    return 0;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned int *n, process *found) {
    if (index_of(device)) { *n = 0; return 0; }
    if (*n < 2) { *n = 2; return 7; }
    *n = 2;
    process own = {pid, 5ULL << 30, 0, 0}, other = {4242, ~0ULL, 0, 0};
    found[0] = own; found[1] = other;
    return 0;
}
int nvmlDeviceGetProcessUtilization(void *device, sample *found, unsigned int *n, unsigned long long since) {
    (void)device;
    if (since >= now) return 6;
    if (found == NULL || *n < 2) { *n = 2; return 7; }
    *n = 2;
    sample early = {pid, now - 1, 99, 0, 0, 0}, late = {pid, now, busy / 2, 0, 0, 0};
    found[0] = late; found[1] = early;
    return 0;
}
int nvmlEventSetCreate(void **set) { *set = waiting; return 0; }
int nvmlEventSetFree(void *set) { (void)set; return 0; }
int nvmlDeviceRegisterEvents(void *device, unsigned long long types, void *set) {
    (void)set;
    return types != 8 ? 2 : index_of(device) == silent ? 3 : 0;
}
int nvmlEventSetWait_v2(void *set, event *found, unsigned int milliseconds) {
    (void)set;
    if (milliseconds) return 2;
    if (!events) return 10;
    *found = waiting[--events];
    return 0;
}
