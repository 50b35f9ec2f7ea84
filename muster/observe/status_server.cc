#include "muster/observe/status_server.h"

#include <httplib.h>

#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "muster/observe/prometheus_text.h"

namespace muster {
namespace {

// One thread for a person's page, one for a scraper.
constexpr size_t kThreads = 2;
constexpr time_t kPatienceSeconds = 5;
constexpr size_t kMostRequestBytes = 4096;

std::string Escaped(const std::string& text) {
  return absl::StrReplaceAll(text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

// Makes a page that reloads itself every two seconds.
std::string Page(const std::string& title, const std::string& text) {
  return absl::StrCat(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta http-equiv=\"refresh\" content=\"2\">\n"
      "<meta name=\"viewport\" content=\"width=device-width\"><title>",
      Escaped(title),
      " - muster</title>\n<style>"
      "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem;color:#1a1d21;"
      "background:#fff}"
      "h1{font-size:1.3rem;margin:0}a{color:#0b57d0}pre{font:13px/1.5 ui-monospace,monospace;overflow-x:auto;"
      "background:#f4f6f8;padding:1rem;border-radius:6px}"
      "@media(prefers-color-scheme:dark){body{background:#15181c;color:#e6e8ea}pre{background:#1f2429}a{color:#8ab4f8}}"
      "</style></head>\n<body><h1>",
      Escaped(title),
      "</h1>\n<p><a href=\"/status\">/status</a> (JSON) &middot; "
      "<a href=\"/metrics\">/metrics</a> (Prometheus)</p>\n<pre>",
      Escaped(text), "</pre></body></html>\n");
}

}  // namespace

class StatusServer::Http {
 public:
  explicit Http(StatusSource source) : source_(std::move(source)) {
    server_.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
    // httplib's default would let two processes listen on one port.
    server_.set_socket_options([](socket_t socket) {
      const int yes = 1;
      setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    });
    // A kept-alive connection would occupy a thread.
    server_.set_keep_alive_max_count(1);
    server_.set_read_timeout(kPatienceSeconds);
    server_.set_write_timeout(kPatienceSeconds);
    server_.set_payload_max_length(kMostRequestBytes);
    Serve("/", "text/html; charset=utf-8", [this](const std::string& status) -> absl::StatusOr<std::string> {
      auto text = source_.text(status);
      if (!text.ok()) return text;
      return Page(source_.title, *text);
    });
    Serve("/status", "application/json",
          [](const std::string& status) -> absl::StatusOr<std::string> { return status; });
    Serve("/metrics", kPrometheusContentType, source_.metrics);
  }
  ~Http() {
    if (!thread_.joinable()) return;
    server_.stop();
    thread_.join();
  }
  Http(const Http&) = delete;
  Http& operator=(const Http&) = delete;

  // Returns the port, or -1.
  int Listen(const StatusAddress& address) {
    int port = address.port;
    if (port == 0) {
      port = server_.bind_to_any_port(address.host);
    } else if (!server_.bind_to_port(address.host, port)) {
      port = -1;
    }
    if (port < 0) return -1;
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    // Before it runs it could not be stopped.
    while (!server_.is_running()) std::this_thread::yield();
    return port;
  }

 private:
  void Serve(const char* path, const char* type,
             std::function<absl::StatusOr<std::string>(const std::string& status)> render) {
    server_.Get(path, [this, type, render = std::move(render)](const httplib::Request&, httplib::Response& response) {
      const absl::StatusOr<std::string> status = source_.status();
      const absl::StatusOr<std::string> body = status.ok() ? render(*status) : status;
      if (body.ok()) return response.set_content(*body, type);
      response.status = absl::IsUnavailable(body.status()) ? 503 : 500;
      response.set_content(absl::StrCat(body.status().message(), "\n"), "text/plain; charset=utf-8");
    });
  }

  const StatusSource source_;
  httplib::Server server_;
  std::thread thread_;
};

StatusServer::StatusServer(std::unique_ptr<Http> http, std::string url)
    : http_(std::move(http)), url_(std::move(url)) {}

StatusServer::~StatusServer() = default;

absl::StatusOr<std::unique_ptr<StatusServer>> StatusServer::Start(const StatusAddress& address, StatusSource source) {
  auto http = std::make_unique<Http>(std::move(source));
  const int port = http->Listen(address);
  if (port < 0)
    return absl::InvalidArgumentError(absl::StrCat("--status_port: cannot listen at ", address.host, ":", address.port,
                                                   "; is it in use? 0 takes a free port"));
  return std::unique_ptr<StatusServer>(
      new StatusServer(std::move(http), absl::StrCat("http://", address.host, ":", port, "/")));
}

}  // namespace muster
