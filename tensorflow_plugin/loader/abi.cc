#include "tensorflow_plugin/loader/abi.h"

#include <cstdint>
#include <fstream>
#include <iterator>

namespace xpu::loader {
namespace {

// libtensorflow_xpu_core_2_22.so -> libtensorflow_xpu_core_2_22.abi
std::ifstream ListBeside(const std::string& core) { return std::ifstream(core.substr(0, core.rfind('.')) + ".abi"); }

uint32_t Crc32(const std::string& data) {
  uint32_t table[256];
  for (uint32_t i = 0; i < 256; ++i) {
    table[i] = i;
    for (int bit = 0; bit < 8; ++bit) table[i] = table[i] >> 1 ^ (table[i] & 1 ? 0xedb88320u : 0);
  }
  uint32_t crc = ~0u;
  for (const unsigned char c : data) crc = crc >> 8 ^ table[(crc ^ c) & 0xff];
  return ~crc;
}

}  // namespace

std::string BuiltFor(const std::string& core) {
  std::ifstream list = ListBeside(core);
  std::string word, version;
  return list >> word >> version && word == "tensorflow" ? version : "";
}

std::string DifferingHeader(const std::string& core, const std::string& tensorflow) {
  std::ifstream list = ListBeside(core);
  std::string name;
  std::getline(list, name);
  uint32_t crc = 0;
  size_t size = 0;
  while (list >> std::hex >> crc >> std::dec >> size >> name) {
    std::ifstream header(tensorflow + "/include/" + name, std::ios::binary);
    const std::string data{std::istreambuf_iterator<char>(header), {}};
    if (data.size() != size || Crc32(data) != crc) return name;
  }
  return "";
}

bool IsPrerelease(const std::string& version) { return version.find_first_not_of("0123456789.") != std::string::npos; }

}  // namespace xpu::loader
