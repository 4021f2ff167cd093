// TF_XPU_DUMP_FUSION: what clusters are made of, for people.
#ifndef TENSORFLOW_PLUGIN_CLUSTER_DUMP_H_
#define TENSORFLOW_PLUGIN_CLUSTER_DUMP_H_

#include <map>
#include <string>

namespace xpu::cluster {

struct Captured;
class Members;

// From now on each capture is written to a file of its own in `folder`; nowhere if it is empty.
void SetDumpFolder(std::string folder);

// Writes what the loops of a graph are, by name, if they are not part of a cluster's command list: a line for each.
// Writes nothing if there are none.
void DumpLoops(const std::map<std::string, std::string>& loops);

// `captured`: null if it failed, for the reason `why`.
void Dump(const std::string& name, const Members& members, const Captured* captured, const std::string& why);

}  // namespace xpu::cluster

#endif  // TENSORFLOW_PLUGIN_CLUSTER_DUMP_H_
