// SPDX-License-Identifier: Apache-2.0
// The full-screen view by ncurses. One thread looks, draws and reads keys: a look reads only what is new, so
// keys wait a moment at most. Signals arrive as wishes through a pipe that the same poll() watches, and the
// terminal is put back by a destructor on every way out.
#include "cli/top/screen.h"

#include <curses.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <clocale>
#include <csignal>
#include <cstdlib>

#include "base/text/units.h"
#include "base/unix_time.h"
#include "cli/kit/interrupt.h"
#include "cli/top/controls.h"

namespace lockstep::cli::top {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kTitleRows = 5, kFootRows = 1;  // title, verdict, sums, hidden columns, heading; keys

// The terminal in full-screen mode, for as long as the object lives.
class Terminal {
 public:
  Terminal() {
    // ncurses needs the locale to draw UTF-8. Only LC_CTYPE: numbers keep their dot.
    setlocale(LC_CTYPE, "");
    // Not initscr(), which ends the program if it does not know the terminal.
    screen_ = newterm(nullptr, stdout, stdin);
    if (screen_ == nullptr) return;
    cbreak();
    noecho();
    keypad(stdscr, TRUE);
    // poll() does the waiting; getch() only fetches what has come.
    nodelay(stdscr, TRUE);
    curs_set(0);
    const char* no_color = std::getenv("NO_COLOR");
    if ((no_color != nullptr && *no_color != 0) || !has_colors()) return;
    start_color();
    // -1 below keeps the background that the user has chosen.
    use_default_colors();
    init_pair(pair(Mood::kBad), COLOR_RED, -1);
    init_pair(pair(Mood::kWarning), COLOR_YELLOW, -1);
    init_pair(pair(Mood::kGood), COLOR_GREEN, -1);
    colours_ = true;
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  ~Terminal() {
    if (screen_ == nullptr) return;
    endwin();
    delscreen(screen_);
  }
  bool usable() const { return screen_ != nullptr; }

  void line(int row, const Line& line) const {
    attrset(attributes(line.mood));
    move(row, 0);
    clrtoeol();
    addnstr(line.text.c_str(), -1);
    attrset(A_NORMAL);
  }

 private:
  static short pair(Mood mood) { return static_cast<short>(static_cast<int>(mood) + 1); }
  attr_t attributes(Mood mood) const {
    attr_t colour = colours_ ? static_cast<attr_t>(COLOR_PAIR(pair(mood))) : 0;
    switch (mood) {
      case Mood::kHeading:
        return A_REVERSE;
      case Mood::kBad:
        return A_BOLD | colour;
      case Mood::kWarning:
      case Mood::kGood:
        return colour;
      case Mood::kFaint:
        return A_DIM;
      case Mood::kPlain:
        break;
    }
    return A_NORMAL;
  }

  SCREEN* screen_ = nullptr;
  bool colours_ = false;
};

int translated(int key) {
  switch (key) {
    case KEY_UP:
      return kKeyUp;
    case KEY_DOWN:
      return kKeyDown;
    case KEY_PPAGE:
      return kKeyPageUp;
    case KEY_NPAGE:
      return kKeyPageDown;
    case KEY_HOME:
      return kKeyHome;
    case KEY_END:
      return kKeyEnd;
    default:
      return key;
  }
}

class Screen {
 public:
  explicit Screen(const Watched& watched) : watched_(watched) {}

  Result<void> loop() {
    if (!terminal_.usable())
      return Error{ErrorCode::kUnsupported, "this terminal cannot be drawn on (check TERM)", {}};
    look();
    for (auto next = Clock::now() + watched_.period;;) {
      draw();
      wait_until(next);
      if (interrupt_.wanted() || !take_keys()) return {};
      if (Clock::now() < next) continue;
      if (!controls_.paused()) look();
      // A look that took longer than a period must not be followed by another at once, which would leave no
      // time for keys.
      next = std::max(next + watched_.period, Clock::now() + watched_.period / 2);
    }
  }

 private:
  void look() {
    auto begin = Clock::now();
    auto processes = watched_.look();
    took_ = Clock::now() - begin;
    // After an error the last table stays: one look that fails must not empty the screen.
    message_ = processes ? "" : processes.error().message();
    if (processes) seen_ = watch_.look(*processes);
    at_ns_ = unix_now_ns();
  }

  void wait_until(Clock::time_point next) const {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(next - Clock::now()).count() + 1;
    pollfd wake[] = {{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0},
                     {.fd = interrupt_.descriptor(), .events = POLLIN, .revents = 0}};
    // +1 above: rounded down, the last millisecond would be a busy loop.
    poll(wake, 2, static_cast<int>(std::max<int64_t>(left, 0)));
    // A terminal that has gone is always ready.
    if ((wake[0].revents & (POLLHUP | POLLERR)) != 0) std::raise(SIGHUP);
  }

  bool take_keys() {
    for (int key; (key = getch()) != ERR;) {
      if (!controls_.press(translated(key), page())) return false;
    }
    return true;
  }

  size_t page() const { return static_cast<size_t>(std::max(LINES - kTitleRows - kFootRows - folds_, 1)); }

  void draw() {
    erase();
    auto width = static_cast<size_t>(std::max(COLS, 1));
    std::string title = "lockstep top  " + watched_.name + "  " + format_time(at_ns_) + "  refreshed in " +
                        format_duration(static_cast<double>(std::chrono::nanoseconds(took_).count()));
    if (controls_.paused()) title += "  PAUSED";
    terminal_.line(0, {title.substr(0, width), Mood::kFaint});
    if (!message_.empty()) terminal_.line(1, {message_.substr(0, width), Mood::kWarning});
    if (controls_.help()) {
      draw_help(width);
    } else if (!seen_.rows.empty()) {
      draw_view(width);
    }
    std::string keys = "q quit  ? help  p pause  f fold  r l b o i d sort (now by " +
                       std::string(controls_.sort_name()) +
                       (controls_.options().reverse ? ", reversed)" : ")");
    // One column less: a character in the last cell would scroll some terminals.
    terminal_.line(LINES - 1, {keys.substr(0, width - 1), Mood::kFaint});
    refresh();
  }

  void draw_help(size_t width) const {
    int row = 2;
    for (std::string_view line : help_lines())
      terminal_.line(row++, {std::string(line.substr(0, width)), Mood::kPlain});
  }

  void draw_view(size_t width) {
    ViewOptions options = controls_.options();
    options.rows = static_cast<size_t>(std::max(LINES - kTitleRows - kFootRows, 1));
    options.width = width;
    View view = make_view(seen_, options);
    if (!message_.empty()) view.verdict = {{message_.substr(0, width), Mood::kWarning}};
    folds_ = static_cast<int>(view.verdict.size()) - 1;
    int row = 1;
    for (const Line& line : view.verdict) terminal_.line(row++, line);
    for (const Line& line : {view.sums, view.hidden, view.heading}) terminal_.line(row++, line);
    for (const Line& line : view.table) terminal_.line(row++, line);
  }

  const Watched& watched_;
  Interrupt interrupt_{
      Interrupt::Second::kIsNoted};  // before the terminal, whose library takes signals nobody has
  Terminal terminal_;
  Controls controls_;
  live::RankWatch watch_;
  live::RankRows seen_;
  std::string message_;
  Clock::duration took_{};
  int64_t at_ns_ = 0;
  int folds_ = 0;  // lines of the verdict beyond the first
};

}  // namespace

Result<void> run_screen(const Watched& watched) { return Screen(watched).loop(); }

}  // namespace lockstep::cli::top
