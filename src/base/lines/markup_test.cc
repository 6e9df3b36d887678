// SPDX-License-Identifier: Apache-2.0
#include "base/lines/markup.h"

#include <gtest/gtest.h>

#include "base/lines/line_splitter.h"

namespace lockstep {
namespace {

std::string plain(std::string_view line) {
  std::string scratch;
  return std::string(without_markup(line, scratch));
}

TEST(Markup, NamesAndNumbersAreCharacters) {
  EXPECT_EQ(plain("init.cc:9 -&gt; 3 &quot;a&quot; &amp;lt; &#39;b&#x27;&nbsp;&#160;c"),
            "init.cc:9 -> 3 \"a\" &lt; 'b'  c");
  EXPECT_EQ(plain("peer 192.0.2.1\\u003c5\\u003e \\u001b[0m"), "peer 192.0.2.1<5> \033[0m");
}

TEST(Markup, TagsOfPagesGoAndOtherNamesInBracketsStay) {
  EXPECT_EQ(plain("<code>one <b class=\"x\">two</b></code><br/>"), "one two");
  EXPECT_EQ(plain("one<br>two</p><p>three"), "one two three");
  EXPECT_EQ(plain("<host>:7:7 [0] eth0:192.0.2.1<0> [1,9]<stdout>: <brand>"),
            "<host>:7:7 [0] eth0:192.0.2.1<0> [1,9]<stdout>: <brand>");
}

TEST(Markup, WhatIsHalfThereStays) {
  for (const char* text : {"&", "&#", "&#;", "&#x;", "&#9999999;", "&#7;", "&lt", "<", "</", "<code", "\\u00",
                           "\\u003", "\\u0007", "<a"}) {
    EXPECT_EQ(plain(text), text);
    EXPECT_FALSE(has_markup(text)) << text;
  }
  EXPECT_TRUE(has_markup("x -&gt; 2"));
  EXPECT_TRUE(has_markup("x</pre>"));
  EXPECT_FALSE(has_markup("eth0:192.0.2.1<0> a && b \\n"));
}

TEST(Markup, ASplitterTakesItAwayWhereItIsTold) {
  std::string seen;
  const auto visit = [&](std::string_view line) { seen.append(line).append("|"); };
  LineSplitter raw, plain_one;
  raw.feed("a -&gt; 2\n", visit);
  plain_one.take_markup();
  plain_one.feed("a -&g", visit);
  plain_one.feed("t; 2<br/>\n&#27;[31mred\n>> b\n>\n", visit);
  EXPECT_EQ(seen, "a -&gt; 2|a -> 2|red|b||");
}

}  // namespace
}  // namespace lockstep
