#include "tensorflow_plugin/conformance/empty_library.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>

namespace xpu::conformance {
namespace {

// The file: headers, and the least that the dynamic linker wants to find. It has no sections.
struct Image {
  ElfW(Ehdr) header;
  ElfW(Phdr) segments[3];
  ElfW(Dyn) dynamic[7];
  ElfW(Word) hash[4];  // a table of one bucket and one symbol, which is the null symbol
  ElfW(Sym) symbol;
  char strings[256];
};

}  // namespace

bool LoadEmptyLibrary(const std::string& name) {
  Image image{};
  if (name.size() + 2 > sizeof image.strings) return false;
  // For the machine that this program is for.
  std::ifstream("/proc/self/exe", std::ios::binary).read(reinterpret_cast<char*>(&image.header), sizeof image.header);
  image.header.e_type = ET_DYN;
  image.header.e_entry = 0;
  image.header.e_phoff = offsetof(Image, segments);
  image.header.e_phnum = 3;
  image.header.e_shoff = image.header.e_shnum = image.header.e_shstrndx = 0;

  ElfW(Phdr) & load = image.segments[0];
  load.p_type = PT_LOAD;
  load.p_flags = PF_R | PF_W;  // the dynamic linker writes addresses into `dynamic`
  load.p_filesz = load.p_memsz = sizeof image;
  load.p_align = 4096;
  ElfW(Phdr) & dynamic = image.segments[1];
  dynamic.p_type = PT_DYNAMIC;
  dynamic.p_flags = PF_R | PF_W;
  dynamic.p_offset = dynamic.p_vaddr = dynamic.p_paddr = offsetof(Image, dynamic);
  dynamic.p_filesz = dynamic.p_memsz = sizeof image.dynamic;
  dynamic.p_align = alignof(ElfW(Dyn));
  image.segments[2].p_type = PT_GNU_STACK;  // without it the stack would become executable
  image.segments[2].p_flags = PF_R | PF_W;

  const auto entry = [&image](int i, auto tag, uint64_t value) {
    image.dynamic[i].d_tag = tag;
    image.dynamic[i].d_un.d_val = value;
  };
  entry(0, DT_SONAME, 1);
  entry(1, DT_HASH, offsetof(Image, hash));
  entry(2, DT_STRTAB, offsetof(Image, strings));
  entry(3, DT_STRSZ, sizeof image.strings);
  entry(4, DT_SYMTAB, offsetof(Image, symbol));
  entry(5, DT_SYMENT, sizeof image.symbol);
  entry(6, DT_NULL, 0);
  image.hash[0] = image.hash[1] = 1;
  std::memcpy(image.strings + 1, name.data(), name.size());

  const int file = memfd_create(name.c_str(), MFD_CLOEXEC);
  if (file < 0 || write(file, &image, sizeof image) != static_cast<ssize_t>(sizeof image)) return false;
  // The file stays open: the dynamic linker knows it by this path, which the next one must not have.
  return dlopen(("/proc/self/fd/" + std::to_string(file)).c_str(), RTLD_LAZY | RTLD_GLOBAL) != nullptr;
}

}  // namespace xpu::conformance
