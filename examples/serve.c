/* Serves a SavedModel on an XPU without Python: docs/serving.md says how to build it and what it prints.

   serve LIBRARY MODEL INPUT OUTPUT THREADS REQUESTS DIM...

   LIBRARY is the plugin, MODEL a SavedModel's folder, INPUT and OUTPUT are tensors of its signature as
   `saved_model_cli show` names them, and DIM... is the shape of a request of floats. Each thread sends its requests one
   after the other, as a connection of a server would. All requests have the same numbers: 0, 1/n, 2/n, ... */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tensorflow/c/c_api.h"
#include "tensorflow/c/c_api_experimental.h"

static TF_Session* session;
static TF_Output input, output;
static int64_t shape[8];
static int rank;
static long requests;

/* Ends the program with the cause if something failed. */
static void check(const TF_Status* status, const char* what) {
  if (TF_GetCode(status) == TF_OK) return;
  fprintf(stderr, "%s: %s\n", what, TF_Message(status));
  exit(2);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}

/* A tensor "name:index" of the graph. */
static TF_Output find(TF_Graph* graph, const char* tensor) {
  char name[256];
  snprintf(name, sizeof name, "%s", tensor);
  char* colon = strrchr(name, ':');
  if (colon != NULL) *colon = 0;
  TF_Output found = {TF_GraphOperationByName(graph, name), colon != NULL ? atoi(colon + 1) : 0};
  if (found.oper != NULL) return found;
  fprintf(stderr, "the model has no operation \"%s\"; `saved_model_cli show --all` lists its tensors\n", name);
  exit(2);
}

/* One request: the first `count` numbers of the answer. */
static void request(TF_Status* status, float* answer, int count) {
  int64_t elements = 1;
  for (int i = 0; i < rank; ++i) elements *= shape[i];
  TF_Tensor *in = TF_AllocateTensor(TF_FLOAT, shape, rank, elements * sizeof(float)), *out = NULL;
  for (int64_t i = 0; i < elements; ++i) ((float*)TF_TensorData(in))[i] = (float)i / elements;
  TF_SessionRun(session, NULL, &input, &in, 1, &output, &out, 1, NULL, 0, NULL, status);
  check(status, "request");
  const int size = (int)TF_TensorElementCount(out);
  memcpy(answer, TF_TensorData(out), (size < count ? size : count) * sizeof(float));
  TF_DeleteTensor(in);
  TF_DeleteTensor(out);
}

static void* client(void* unused) {
  (void)unused;
  TF_Status* status = TF_NewStatus();
  float answer;
  for (long i = 0; i < requests; ++i) request(status, &answer, 1);
  TF_DeleteStatus(status);
  return NULL;
}

int main(int argc, char** argv) {
  if (argc < 8 || argc > 15) {
    fprintf(stderr, "usage: serve LIBRARY MODEL INPUT OUTPUT THREADS REQUESTS DIM...\n");
    return 1;
  }
  TF_Status* status = TF_NewStatus();
  TF_LoadPluggableDeviceLibrary(argv[1], status); /* before the session, which is when devices are made */
  check(status, argv[1]);

  TF_Graph* graph = TF_NewGraph();
  const char* tags[] = {"serve"};
  session = TF_LoadSessionFromSavedModel(TF_NewSessionOptions(), NULL, argv[2], tags, 1, graph, NULL, status);
  check(status, argv[2]);
  TF_DeviceList* devices = TF_SessionListDevices(session, status);
  check(status, "devices");
  for (int i = 0; i < TF_DeviceListCount(devices); ++i) printf("device %s\n", TF_DeviceListName(devices, i, status));

  input = find(graph, argv[3]);
  output = find(graph, argv[4]);
  const int threads = atoi(argv[5]);
  requests = atol(argv[6]);
  for (rank = 0; rank < argc - 7; ++rank) shape[rank] = atoll(argv[7 + rank]);

  float answer[4] = {0};
  double start = now();
  request(status, answer, 4);
  printf("first answer after %.1f ms: %.6g %.6g %.6g %.6g\n", (now() - start) * 1e3, answer[0], answer[1], answer[2],
         answer[3]);
  for (int i = 0; i < 10; ++i) request(status, answer, 1); /* captured by now */

  pthread_t clients[64];
  start = now();
  for (int i = 0; i < threads && i < 64; ++i) pthread_create(&clients[i], NULL, client, NULL);
  for (int i = 0; i < threads && i < 64; ++i) pthread_join(clients[i], NULL);
  printf("%.0f requests a second, %d threads\n", threads * requests / (now() - start), threads);
  return 0;
}
