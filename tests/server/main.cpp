// preval_test_server [--kind KIND] [--port N] [--script FILE|JSON]: serves until SIGTERM or SIGINT.
// Prints "listening on 127.0.0.1:PORT" once the port is bound, and what it did at the end.
#include <sys/resource.h>

#include <csignal>
#include <fstream>
#include <iostream>
#include <iterator>

#include "protocols.h"

using namespace preval::test_server;

namespace {

Service* running = nullptr;  // for the signal handler, which gets no argument

Json script_of(const std::string& text) {
  if (text.starts_with('{')) return Json::parse(text);
  std::ifstream file(text, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + text);
  return Json::parse(file);
}

}  // namespace

int main(int argc, char** argv) try {
  Json script = Json::object();
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i], value = argv[i + 1];
    if (name == "--script") {
      script.update(script_of(value));
    } else if (name == "--kind") {
      script["kind"] = value;
    } else if (name == "--port") {
      script["port"] = std::stoi(value);
    } else {
      throw std::runtime_error("no option " + name + "; there are --kind, --port and --script");
    }
  }
  if (argc % 2 == 0) throw std::runtime_error(std::string("no value for ") + argv[argc - 1]);
  Service service(parse_script(script));
  running = &service;
  const auto stop = [](int) { running->stop(); };
  std::signal(SIGTERM, stop);
  std::signal(SIGINT, stop);
  std::cout << "listening on 127.0.0.1:" << service.port() << std::endl;
  service.run();
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const double seconds = static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                         static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
  std::cout << service.requests() << " requests in " << seconds
            << " s of processor time: " << static_cast<double>(service.requests()) / seconds
            << " per second" << std::endl;
  return 0;
} catch (const std::exception& error) {
  std::cerr << "preval_test_server: " << error.what() << '\n';
  return 2;
}
