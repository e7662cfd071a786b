#include "site/synthetic_scripts.hpp"

#include <array>
#include <string_view>

#include "site/synthetic_page.hpp"

namespace argiope {
namespace {

struct ScriptedPlace {
  std::string_view path;
  std::string_view type;  // empty: a page, with this in its body
  std::string_view text;
};

constexpr std::string_view kJavaScript = "text/javascript";

constexpr std::array kScriptedPlaces = {
    // A script of its own file, and one that a second page has, too.
    ScriptedPlace{"/scripts/1",
                  {},
                  "<p>nothing yet</p><script src=\"/scripts/links.js\"></script><script>link('/scripts/2')</script>"},
    ScriptedPlace{"/scripts/links.js", kJavaScript,
                  "function link(to){const a=document.createElement('a');a.href=to;a.textContent='on to "
                  "'+to;document.body.append(a)}"},
    // Data.
    ScriptedPlace{"/scripts/2",
                  {},
                  "<script src=\"/scripts/links.js\"></script><script>fetch('/scripts/list.json')"
                  ".then(r=>r.json()).then(l=>l.forEach(link))</script>"},
    ScriptedPlace{"/scripts/list.json", "application/json", "[\"/scripts/3\"]"},
    // Dialogs, which nobody answers.
    ScriptedPlace{
        "/scripts/3",
        {},
        "<script>alert('hello');if(!confirm('really?'))document.write('<a href=\"/scripts/4\">on</a>')</script>"},
    // Elsewhere.
    ScriptedPlace{"/scripts/4",
                  {},
                  "<p>one moment</p><a href=\"/scripts/never\">no</a><script>location.href='/scripts/5'</script>"},
    // A URL that the script gives to the page.
    ScriptedPlace{"/scripts/5", {}, "<script>history.pushState({},'','/scripts/6')</script>"},
    // Later.
    ScriptedPlace{
        "/scripts/6",
        {},
        "<script>setTimeout(()=>document.body.innerHTML+='<a id=\"late\" href=\"/scripts/7\">on</a>',200)</script>"},
    // A cookie that a script sets.
    ScriptedPlace{"/scripts/7",
                  {},
                  "<script>document.cookie='seen=1; path=/';document.write('<a href=\"/scripts/8\">on</a>')</script>"},
    // Half of a pair, which is no character.
    ScriptedPlace{
        "/scripts/9", {}, "<p id=\"end\">the end \xF0\x9F\x95\xB7</p><script>document.body.append('\\ud83d')</script>"},
    // Without an end.
    ScriptedPlace{"/scripts/loop", {}, "<script>for(;;){}</script>"},
    ScriptedPlace{"/scripts/huge",
                  {},
                  "<script>const s='<p>'+'x'.repeat(1e6)+'</p>';for(let i=0;i<30;++i)document.write(s)</script>"},
    // Places that no page should get at.
    ScriptedPlace{
        "/scripts/away",
        {},
        "<img src=\"/scripts/picture.png\"><iframe src=\"/scripts/frame\"></iframe><p id=\"told\"></p><script>"
        "const told=t=>document.getElementById('told').append(t+' ');"
        "for(const u of "
        "['http://10.255.255.1/secret','http://169.254.169.254/latest','/private/1','file:///etc/passwd'])"
        "fetch(u).then(r=>told('got '+u)).catch(e=>told('none'));"
        "navigator.sendBeacon('/scripts/beacon','x');window.open('/scripts/popup');"
        "fetch('/scripts/list.json',{method:'DELETE'}).catch(e=>told('none'))</script>"},
};

}  // namespace

bool answer_scripts(const SyntheticRequest& request, SyntheticReply& reply) {
  if (request.target == "/scripts/8") {
    // Only who has the cookie that the page before has set sees where it goes on.
    reply.body =
        request.cookie.contains("seen=1") ? small_page("Seen", "<a href=\"/scripts/9\">on</a>") : small_page("Unseen");
    return true;
  }
  for (const ScriptedPlace& place : kScriptedPlaces) {
    if (place.path != request.target) continue;
    if (!place.type.empty()) {
      reply.content_type = place.type;
      reply.body = place.text;
    } else {
      reply.body = small_page("Scripts", std::string(place.text));
    }
    return true;
  }
  return false;
}

}  // namespace argiope
