//! Decides whether a source may be given to the parser, which backtracks where TypeScript is ambiguous.
//! Invariant: brackets are counted as the parser will count them. If that is uncertain, every `<` counts as a bracket
//! with a choice.
//!
//! A `<` can begin type arguments or be a comparison, so the parser tries both. Each bracket with a `<` before the next
//! bracket opens can double the time: `(a=b<` repeated thirty times would practically never end.

/// The largest depth of brackets. The parser's time grows with its square.
const MAX_DEPTH: usize = 128;
/// The largest number of `<` in one bracket that no `>` has closed. The time grows with its square, too.
const MAX_PENDING: usize = 200;
/// The largest number of nested brackets with a `<` in them. The time doubles with each.
const MAX_CHOICES: usize = 9;

pub fn is_safe_to_parse(source: &str) -> bool {
    let mut scan = BracketScan {
        bytes: source.as_bytes(),
        at: 0,
        brackets: vec![Bracket::default()],
        after_value: false,
        uncertain: false,
    };
    while scan.at < scan.bytes.len() {
        scan.token();
        let choices = scan.brackets.iter().filter(|bracket| bracket.has_choice).count();
        let pending = scan.brackets.last().map_or(0, |bracket| bracket.pending);
        if scan.brackets.len() > MAX_DEPTH || choices > MAX_CHOICES || pending > MAX_PENDING {
            return false;
        }
    }
    !scan.uncertain || source.matches('<').count() <= MAX_CHOICES
}

/// A bracket that is open. The first one stands for the source itself.
#[derive(Default)]
struct Bracket {
    /// Whether it contains a `<`.
    has_choice: bool,
    /// The number of `<` in it that no `>` has closed.
    pending: usize,
    /// Whether it is a `${` of a template.
    is_template: bool,
}

/// Scans a source for brackets, outside of strings, templates, comments and regular expressions.
struct BracketScan<'s> {
    bytes: &'s [u8],
    at: usize,
    /// The open brackets, the innermost last.
    brackets: Vec<Bracket>,
    /// Whether a value was just read, so that a `/` is a division.
    after_value: bool,
    /// Whether the parser may read the source in another way than this scan.
    uncertain: bool,
}

impl BracketScan<'_> {
    fn token(&mut self) {
        let byte = self.bytes[self.at];
        match byte {
            b'(' | b'[' | b'{' => self.open(false),
            b'}' if self.brackets.last().is_some_and(|bracket| bracket.is_template) => {
                self.close();
                self.template();
            }
            b')' | b']' | b'}' => self.close(),
            b'\'' | b'"' => self.string(byte),
            b'`' => self.template(),
            b'/' => self.slash(),
            b'<' => {
                // In some sources `<!--` begins a comment.
                self.uncertain |= self.rest().starts_with(b"<!--");
                if let Some(bracket) = self.brackets.last_mut() {
                    bracket.has_choice = true;
                    bracket.pending += 1;
                }
                self.step(1, false);
            }
            b'>' => {
                if let Some(bracket) = self.brackets.last_mut() {
                    bracket.pending = bracket.pending.saturating_sub(1);
                }
                self.step(1, false);
            }
            b'-' => {
                // In some sources `-->` begins a comment.
                self.uncertain |= self.rest().starts_with(b"-->");
                self.step(1, false);
            }
            byte if is_word_byte(byte) => self.word(),
            byte => self.step(1, self.after_value && byte.is_ascii_whitespace()),
        }
    }

    fn rest(&self) -> &[u8] {
        &self.bytes[self.at.min(self.bytes.len())..]
    }

    fn step(&mut self, bytes: usize, after_value: bool) {
        self.at += bytes;
        self.after_value = after_value;
    }

    fn open(&mut self, is_template: bool) {
        self.brackets.push(Bracket { is_template, ..Bracket::default() });
        self.step(1, false);
    }

    fn close(&mut self) {
        if self.brackets.len() > 1 {
            self.brackets.pop();
        }
        self.step(1, true);
    }

    fn word(&mut self) {
        let length = self.rest().iter().take_while(|byte| is_word_byte(**byte)).count();
        // After these words a `/` begins a regular expression.
        let words_before_values: [&[u8]; 10] =
            [b"return", b"typeof", b"case", b"in", b"of", b"await", b"yield", b"void", b"delete", b"else"];
        let is_value = !words_before_values.contains(&&self.rest()[..length]);
        self.step(length, is_value);
    }

    fn string(&mut self, quote: u8) {
        self.at += 1;
        while let Some(byte) = self.bytes.get(self.at) {
            self.at += if *byte == b'\\' { 2 } else { 1 };
            if *byte == quote || *byte == b'\n' {
                break;
            }
        }
        self.after_value = true;
    }

    /// Skips a template, from a back quote or from the end of a `${}`, to the next `${` or to the end.
    fn template(&mut self) {
        if self.bytes.get(self.at) == Some(&b'`') {
            self.at += 1;
        }
        while let Some(byte) = self.bytes.get(self.at) {
            match byte {
                b'\\' => self.at += 1,
                b'`' => break,
                b'$' if self.bytes.get(self.at + 1) == Some(&b'{') => {
                    self.at += 1;
                    return self.open(true);
                }
                _ => {}
            }
            self.at += 1;
        }
        self.step(1, true);
    }

    fn slash(&mut self) {
        let rest = self.rest();
        if rest.starts_with(b"//") {
            self.at += rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
        } else if rest.starts_with(b"/*") {
            let end = rest.windows(2).skip(2).position(|pair| pair == b"*/");
            self.at += end.map_or(rest.len(), |end| end + 4);
        } else {
            self.regular_expression_or_division();
        }
    }

    /// Skips a regular expression or a `/`. After a bracket or a word the slash may be either, so the scan is uncertain
    /// if the two readings would count other brackets.
    fn regular_expression_or_division(&mut self) {
        let mut in_class = false;
        let ends = self.rest().iter().skip(1).scan(false, |is_escaped, byte| {
            let is_plain = !*is_escaped;
            *is_escaped = is_plain && *byte == b'\\';
            in_class = if is_plain { (in_class || *byte == b'[') && *byte != b']' } else { in_class };
            Some(*byte == b'\n' || (is_plain && !in_class && *byte == b'/'))
        });
        let length = ends.take_while(|is_end| !is_end).count() + 2;
        let expression = &self.rest()[..length.min(self.rest().len())];
        let has_brackets = expression.iter().any(|byte| b"()[]{}'\"`<".contains(byte));
        let has_comment = expression[1..].windows(2).any(|pair| pair == b"/*");
        self.uncertain |= self.after_value && (has_brackets || has_comment) && expression.ends_with(b"/");
        self.step(if self.after_value { 1 } else { length }, !self.after_value);
    }
}

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}
