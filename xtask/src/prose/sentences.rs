//! Splits a block of text into sentences, and returns each with the line on which it begins.
//! Invariant: code blocks, code spans, quoted text and URLs are never read as words of a sentence.

/// One sentence. Code spans and quoted text are replaced by `CODE`.
#[derive(Debug, PartialEq, Eq)]
pub struct Sentence {
    pub line: usize,
    pub text: String,
    pub part: Part,
}

/// The kind of text that contains a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Paragraph,
    Heading,
    /// A cell of a table, whose text is often a label.
    Cell,
}

/// The word that replaces a code span, a quotation or a URL.
pub const CODE: &str = "CODE";

/// Splits numbered lines into sentences.
pub fn sentences(lines: &[(usize, String)]) -> Vec<Sentence> {
    let mut out = Vec::new();
    let mut paragraph: Vec<(usize, String)> = Vec::new();
    let mut fence = false;
    for (number, line) in lines {
        let line = line.trim();
        if line.starts_with("```") || line.starts_with("~~~") {
            fence = !fence;
            finish(&mut paragraph, &mut out);
        } else if fence || line.is_empty() {
            finish(&mut paragraph, &mut out);
        } else if line.starts_with('|') {
            finish(&mut paragraph, &mut out);
            for cell in mask(line).split('|') {
                split(&[(*number, cell.trim().to_owned())], Part::Cell, &mut out);
            }
        } else if let Some(heading) = line.strip_prefix('#').map(|rest| rest.trim_start_matches('#')) {
            finish(&mut paragraph, &mut out);
            split(&[(*number, heading.trim().to_owned())], Part::Heading, &mut out);
        } else if let Some(item) = list_item(line) {
            finish(&mut paragraph, &mut out);
            paragraph.push((*number, item.to_owned()));
        } else {
            paragraph.push((*number, line.trim_start_matches('>').trim_start().to_owned()));
        }
    }
    finish(&mut paragraph, &mut out);
    out
}

fn list_item(line: &str) -> Option<&str> {
    let bullet = line.strip_prefix("- ").or_else(|| line.strip_prefix("* "));
    let numbered = || {
        let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
        (rest.len() < line.len()).then(|| rest.strip_prefix(". ").or_else(|| rest.strip_prefix(") "))).flatten()
    };
    bullet.or_else(numbered)
}

fn finish(paragraph: &mut Vec<(usize, String)>, out: &mut Vec<Sentence>) {
    split(paragraph, Part::Paragraph, out);
    paragraph.clear();
}

fn split(lines: &[(usize, String)], part: Part, out: &mut Vec<Sentence>) {
    // The lines are joined before code spans are masked, because a span may continue on the next line. The line ends are kept for counting.
    let joined = lines.iter().map(|(_, line)| line.as_str()).collect::<Vec<_>>().join("\n");
    let text = mask(&joined);
    let mut line = lines.first().map_or(0, |(number, _)| *number);
    let mut begin = 0;
    let mut push = |from: usize, to: usize, line: &mut usize| {
        let piece = &text[from..to];
        let lead = piece.len() - piece.trim_start().len();
        *line += piece[..lead].matches('\n').count();
        let words: Vec<&str> = piece.split_whitespace().collect();
        if !words.is_empty() {
            out.push(Sentence { line: *line, text: words.join(" "), part });
        }
        *line += piece[lead..].matches('\n').count();
    };
    for (at, c) in text.char_indices() {
        if matches!(c, '.' | '!' | '?') && ends_sentence(&text[..at], &text[at + 1..]) {
            push(begin, at + 1, &mut line);
            begin = at + 1;
        }
    }
    push(begin, text.len(), &mut line);
}

const ABBREVIATIONS: &[&str] = &["e.g", "i.e", "etc", "vs", "cf", "ca", "approx", "no"];

fn ends_sentence(before: &str, after: &str) -> bool {
    let closed = after.trim_start_matches([')', '*', '_', '"', '\'', '”']);
    if !closed.starts_with(char::is_whitespace) {
        return closed.is_empty();
    }
    let word = before.rsplit(|c: char| c.is_whitespace() || c == '(').next().unwrap_or_default();
    if ABBREVIATIONS.contains(&word) {
        return false;
    }
    let next = closed.trim_start().trim_start_matches(['*', '_', '(', '[']);
    next.starts_with(|c: char| c.is_uppercase() || c.is_ascii_digit())
}

/// Replaces code spans, quoted text and URLs by `CODE`, and keeps the line ends.
fn mask(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let span = match c {
            '`' => {
                let ticks = rest.len() - rest.trim_start_matches('`').len();
                rest[ticks..].find(&rest[..ticks]).map(|end| ticks + end + ticks)
            }
            '"' => rest[1..].find('"').map(|end| end + 2),
            '“' => rest.find('”').map(|end| end + '”'.len_utf8()),
            '<' => rest.find('>').filter(|end| *end < 40 && rest[1..].starts_with(['/', 'h', '!'])).map(|end| end + 1),
            ']' if rest.starts_with("](") => rest.find(')').map(|end| end + 1),
            'h' if rest.starts_with("http://") || rest.starts_with("https://") => {
                rest.find(char::is_whitespace).or(Some(rest.len()))
            }
            _ => None,
        };
        let taken = span.unwrap_or(c.len_utf8());
        match span {
            Some(_) if c == ']' => {}
            Some(_) => {
                out.push_str(CODE);
                out.extend(rest[..taken].chars().filter(|c| *c == '\n'));
            }
            None if c == '[' => {}
            None => out.push(c),
        }
        rest = &rest[taken..];
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(usize, String)> {
        let lines: Vec<(usize, String)> = text.lines().enumerate().map(|(i, line)| (i + 1, line.to_owned())).collect();
        sentences(&lines).into_iter().map(|sentence| (sentence.line, sentence.text)).collect()
    }

    #[test]
    fn sentences_know_their_line() {
        let sentences =
            read("One goes\non. Two, e.g. `What.` here.\n\nThree (see 1.2). Four?\n- Five\n  goes on\n- Six\n");
        let expected = [
            (1, "One goes on."),
            (2, "Two, e.g. CODE here."),
            (4, "Three (see 1.2)."),
            (4, "Four?"),
            (5, "Five goes on"),
            (7, "Six"),
        ];
        assert_eq!(sentences, expected.map(|(line, text)| (line, text.to_owned())));
    }

    #[test]
    fn code_quotes_and_tables_are_set_apart() {
        let sentences = read(
            "# What?\n```\nWhat is code.\n```\nHe said \"What is\nit. Who\" here. [Who](x.md) goes.\n| a | What b |\n",
        );
        let expected = [(1, "What?"), (5, "He said CODE here."), (6, "Who goes."), (7, "a"), (7, "What b")];
        assert_eq!(sentences, expected.map(|(line, text)| (line, text.to_owned())));
    }
}
