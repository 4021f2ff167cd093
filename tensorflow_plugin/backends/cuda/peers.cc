#include "tensorflow_plugin/backends/cuda/peers.h"

#include <map>
#include <mutex>

namespace xpu::cuda {
namespace {

struct Peer {
  ContextHandle context = nullptr;
  int devices = 0;
};
struct Peers {
  std::mutex mutex;
  std::map<DeviceId, Peer> all;  // by GPU
};
Peers& All() {
  static auto& peers = *new Peers;
  return peers;
}

// Without success, which it may have had before, copies are slower and no less right.
void Allow(DeviceId gpu, ContextHandle context, DeviceId peer, ContextHandle of_peer) {
  int can = 0;
  if (Cu().DeviceCanAccessPeer(&can, gpu, peer) != kSuccess || can == 0) return;
  if (Cu().CtxSetCurrent(context) == kSuccess) (void)Cu().CtxEnablePeerAccess(of_peer, 0);
}

}  // namespace

void AddPeer(DeviceId gpu, ContextHandle context) {
  Peers& peers = All();
  std::lock_guard<std::mutex> lock(peers.mutex);
  Peer& own = peers.all[gpu];
  own.context = context;
  if (own.devices++ == 0) {
    for (const auto& [peer, other] : peers.all) {
      if (peer == gpu) continue;
      Allow(gpu, context, peer, other.context);
      Allow(peer, other.context, gpu, context);
    }
  }
  (void)Cu().CtxSetCurrent(context);
}

void RemovePeer(DeviceId gpu) {
  Peers& peers = All();
  std::lock_guard<std::mutex> lock(peers.mutex);
  const auto found = peers.all.find(gpu);
  if (found != peers.all.end() && --found->second.devices == 0) peers.all.erase(found);
}

}  // namespace xpu::cuda
