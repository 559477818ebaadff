//! Tests of the parser that golden files cannot express: the amount of work, and texts with unusual characters.
//! Invariant: work is measured in steps (bytes read and tokens consumed), never in time.

use base::Limits;

use super::{ParseMode, ParseOutput, parse_counting_steps};

fn count_steps(text: &str) -> usize {
    let limits = Limits { statements: usize::MAX, program_bytes: usize::MAX, ..Limits::default() };
    let (parsed, steps) = parse_counting_steps(text, ParseMode::Program, &limits);
    assert!(parsed.diagnostics.len() <= 20);
    steps
}

fn parse(text: &str) -> ParseOutput {
    super::parse(text, &Limits::default())
}

/// Repeats `piece` until the text has at least `size` bytes. Each `#` in the piece is replaced by the number of the
/// repetition.
fn repeat_to_size(piece: &str, size: usize) -> String {
    let mut text = String::new();
    let mut number = 0;
    while text.len() < size {
        text.push_str(&piece.replace('#', &number.to_string()));
        number += 1;
    }
    text
}

/// Pieces of text whose repetition could make the lexer or the parser take more than linear time.
const ADVERSARIAL_PIECES: &[&str] = &[
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "(]",
    "{)",
    "([{",
    "a(",
    "e1{p1=",
    "e1(a=[",
    "(\n",
    "\n)",
    "(,",
    "a.b(c=[{d:",
    "<<A",
    "<<A\n",
    "<<A ",
    "<<A# ",
    "<<A#\n",
    "<<A#",
    "<<",
    "<<\n",
    "<<<A ",
    "<<A A ",
    "x = <<T\nT\n",
    "x=<<T)\nT\n",
    "\"",
    "\" ",
    "\"\n",
    "\\\"",
    "\\\"\n",
    "a=\"\\\"\n",
    "\"\"\"",
    "\"x\n",
    "\"\\x",
    "'",
    "'a",
    "\\'",
    "\\'\n",
    "`",
    "```",
    "```\n",
    "\u{201c}",
    "\u{2018}a\n",
    ";;",
    ";;\n",
    ";",
    ";\n",
    "#",
    "# ",
    "#\n",
    "//",
    "// \n",
    "a/",
    "/",
    "@",
    "|",
    "&&",
    "==",
    "é",
    "\u{1f600}",
    "\u{feff}",
    "\u{0}",
    "\r",
    "\r\n",
    "\n",
    " ",
    "\t\n",
    ".",
    ".a",
    "..",
    ".^",
    ".^a",
    ",",
    ",\n",
    "=",
    "= ",
    "a=",
    "a=\n",
    "a =b\n",
    "=>",
    "=>{",
    "=>a",
    "a=>b\n",
    "a",
    "a ",
    "a b\n",
    "a, ",
    "a,\n",
    "let ",
    "return a\n",
    "-",
    "- ",
    "-1",
    "- 1 ",
    "+1 ",
    "1.",
    "1.2.",
    "1_0 ",
    ".5",
    "now -7d ",
    "2026-01-01T0",
    "a:",
    "a: ",
    "a://",
    "$",
    "$a",
    "_",
    "_.",
    "*",
    "~",
    "a~b ",
    "a~b c ",
    "<",
    ">=",
    "!",
    "!=",
    "x = e1{p1=\"a\"}\n",
    "e1.limit 5 ",
    "x.sort p4, desc ",
    "x limit 5\n",
    "page(",
    "[0]",
    "[*]",
    ".filter{a>1}",
    ".group_by(a)",
    ".aggregate(n=count())",
];

#[test]
fn work_grows_linearly_with_the_length_of_the_text() {
    for piece in ADVERSARIAL_PIECES {
        let size = 4 * 1024;
        let once = count_steps(&repeat_to_size(piece, size));
        let twice = count_steps(&repeat_to_size(piece, 2 * size));
        assert!(twice <= 2 * once + once / 4 + 200, "{piece:?}: {once} steps, then {twice}");
        assert!(once <= 16 * size + 200, "{piece:?}: {once} steps for {size} bytes");
    }
}

#[test]
fn a_distant_closing_bracket_keeps_the_work_linear() {
    let ends = ["\"x", "\" x", "=\"x", "'", "\nA\n", "\nA).x\n", ")", "}", "\"\"\"", "\u{201d}"];
    for piece in ADVERSARIAL_PIECES {
        for end in ends {
            let blanks = " ".repeat(256);
            let text = repeat_to_size(piece, 1024) + &blanks + end + &blanks + "y";
            let steps = count_steps(&text);
            assert!(steps <= 16 * text.len(), "{piece:?} then {end:?}: {steps} steps for {} bytes", text.len());
        }
    }
}

#[test]
fn the_largest_programs_are_parsed() {
    for piece in ["(", "([{", "e1{p1=", "<<A", "<<A#\n", "\"", "\\\"\n", "'a", ";;", ";;\n", "a ", "x = e1{p1=\"a\"}\n"]
    {
        let mut text = repeat_to_size(piece, 64 * 1024);
        text.truncate(64 * 1024);
        let parsed = parse(&text);
        assert!(parsed.diagnostics.len() <= 20, "{piece:?}");
    }
}

#[test]
fn a_setting_for_nesting_cannot_exhaust_the_stack() {
    let limits = Limits { nesting: usize::MAX, ..Limits::default() };
    for piece in ["[", "e1{p1=", "x=>{a:", "e1(", "e1.m1(a="] {
        let text = repeat_to_size(piece, 60 * 1024);
        let parsed = super::parse(&text, &limits);
        assert!(parsed.diagnostics.iter().any(|found| found.code == crate::codes::NESTED_TOO_DEEP), "{piece:?}");
    }
}

#[test]
fn control_characters_are_shown_escaped_in_messages() {
    let parsed = parse("e1{p1=\u{1}, p2=\u{0}a}");
    let messages: Vec<&str> = parsed.diagnostics.iter().map(|found| found.message.as_str()).collect();
    assert_eq!(messages.len(), 2, "{messages:?}");
    assert!(messages[0].contains("`\\u{1}`") && messages[1].contains("`\\0`"), "{messages:?}");
}

#[test]
fn a_byte_order_mark_moves_no_span_and_is_not_copied() {
    let parsed = parse("\u{feff}e1{p1=it's}");
    assert_eq!(parsed.diagnostics[0].span.start, 9);
    assert_eq!(parsed.diagnostics[0].copy.as_deref(), Some("e1{p1=\"it's\"}"));
}

#[test]
fn a_carriage_return_without_a_line_feed_is_a_blank() {
    let parsed = parse("a = e1\r\na\r");
    assert_eq!((parsed.program.bindings.len(), parsed.program.roots.len()), (1, 1));
    assert!(parsed.diagnostics.is_empty());
}

#[test]
fn spans_cover_the_written_text_of_nodes_and_parts() {
    let text = "x = e1{p1=\"a\"}.r1.limit(5) => e2(_.p1).m1(p5=\"b\").p4";
    let parsed = parse(text);
    let node = &parsed.program.bindings[0].node;
    assert_eq!(node.span.of(text), &text[4..]);
    let parts: Vec<&str> = node.parts.iter().map(|part| part.span.of(text)).collect();
    assert_eq!(parts, [".r1", ".limit(5)", "=> e2(_.p1).m1(p5=\"b\")", ".p4"]);
    let super::tree::PartKind::Each { effect } = &node.parts[2].kind else { panic!("{node:?}") };
    assert_eq!(effect.span.of(text), "e2(_.p1).m1(p5=\"b\")");
}
