#include "base/url.h"

#include <curl/curl.h>

#include <memory>

namespace preval {

namespace {

struct CleanUp {
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
};

std::string part(CURLU* url, CURLUPart which) {
  char* text = nullptr;
  if (curl_url_get(url, which, &text, 0) != CURLUE_OK) return {};
  std::string result(text);
  curl_free(text);
  return result;
}

}  // namespace

std::string url_problem(const std::string& url) {
  // The library guesses a scheme where there is none; people who forget it should hear of it.
  if (url.rfind("http://", 0) != 0 && url.rfind("https://", 0) != 0) {
    return "must begin with http:// or https://";
  }
  const std::unique_ptr<CURLU, CleanUp> parsed(curl_url());
  const CURLUcode outcome = curl_url_set(parsed.get(), CURLUPART_URL, url.c_str(), 0);
  if (outcome != CURLUE_OK || part(parsed.get(), CURLUPART_HOST).empty()) {
    return std::string("is no address: ") +
           (outcome == CURLUE_OK ? "it names no host" : curl_url_strerror(outcome));
  }
  if (!part(parsed.get(), CURLUPART_USER).empty() ||
      !part(parsed.get(), CURLUPART_PASSWORD).empty() || url.find('@') != std::string::npos) {
    return "holds a user name or password";
  }
  if (url.find('?') != std::string::npos) return "holds a query";
  if (url.find('#') != std::string::npos) return "holds a fragment";
  return {};
}

std::string url_path(const std::string& url) {
  const std::unique_ptr<CURLU, CleanUp> parsed(curl_url());
  if (curl_url_set(parsed.get(), CURLUPART_URL, url.c_str(), 0) != CURLUE_OK) return "/";
  return part(parsed.get(), CURLUPART_PATH);
}

}  // namespace preval
