//! Decides whether the TypeScript parser may parse a source. The parser backtracks at ambiguous syntax, so a hostile
//! source could occupy it practically forever.
//! Invariant: brackets are counted as the parser counts them. If this is uncertain, every `<` of the source counts as a
//! nested choice.
//!
//! A choice is a `<`, which can begin type arguments or be a comparison, so the parser tries both. Each nested bracket
//! that contains a `<` can double the parser's time: `(a=b<` repeated thirty times would practically never end.

/// The largest depth of brackets. The parser's time grows with the square of the depth.
const MAX_BRACKET_DEPTH: usize = 128;
/// The largest number of `<` in one bracket that no `>` has closed. The parser's time grows with the square of this
/// number.
const MAX_UNCLOSED_ANGLES: usize = 200;
/// The largest number of nested brackets that contain a `<`. The parser's time doubles with each of them.
const MAX_NESTED_CHOICES: usize = 9;

pub fn is_safe_to_parse(source: &str) -> bool {
    let mut scan = BracketScan {
        bytes: source.as_bytes(),
        at: 0,
        brackets: vec![Bracket::default()],
        after_value: false,
        is_uncertain: false,
    };
    while scan.at < scan.bytes.len() {
        scan.scan_token();
        let choices = scan.brackets.iter().filter(|bracket| bracket.contains_angle).count();
        let unclosed_angles = scan.brackets.last().map_or(0, |bracket| bracket.unclosed_angles);
        if scan.brackets.len() > MAX_BRACKET_DEPTH
            || choices > MAX_NESTED_CHOICES
            || unclosed_angles > MAX_UNCLOSED_ANGLES
        {
            return false;
        }
    }
    !scan.is_uncertain || source.matches('<').count() <= MAX_NESTED_CHOICES
}

/// An open bracket. The first entry of the list represents the source itself.
#[derive(Default)]
struct Bracket {
    /// Whether the bracket contains a `<`.
    contains_angle: bool,
    /// The number of `<` in the bracket that no `>` has closed.
    unclosed_angles: usize,
    /// Whether the bracket is the `${` of a template.
    is_template: bool,
}

/// A scan for the brackets of a source. It skips strings, templates, comments and regular expressions.
struct BracketScan<'s> {
    bytes: &'s [u8],
    at: usize,
    /// The open brackets, the innermost last.
    brackets: Vec<Bracket>,
    /// Whether the last token ended a value. A `/` after a value is a division and does not begin a regular expression.
    after_value: bool,
    /// Whether the parser may read the source differently from this scan.
    is_uncertain: bool,
}

impl BracketScan<'_> {
    fn scan_token(&mut self) {
        let byte = self.bytes[self.at];
        match byte {
            b'(' | b'[' | b'{' => self.open_bracket(false),
            b'}' if self.brackets.last().is_some_and(|bracket| bracket.is_template) => {
                self.close_bracket();
                self.skip_template();
            }
            b')' | b']' | b'}' => self.close_bracket(),
            b'\'' | b'"' => self.skip_string(byte),
            b'`' => self.skip_template(),
            b'/' => self.scan_slash(),
            b'<' => {
                // In a script, unlike in a module, `<!--` begins a comment.
                self.is_uncertain |= self.rest().starts_with(b"<!--");
                if let Some(bracket) = self.brackets.last_mut() {
                    bracket.contains_angle = true;
                    bracket.unclosed_angles += 1;
                }
                self.advance(1, false);
            }
            b'>' => {
                if let Some(bracket) = self.brackets.last_mut() {
                    bracket.unclosed_angles = bracket.unclosed_angles.saturating_sub(1);
                }
                self.advance(1, false);
            }
            b'-' => {
                // In a script, unlike in a module, `-->` at the start of a line begins a comment.
                self.is_uncertain |= self.rest().starts_with(b"-->");
                self.advance(1, false);
            }
            byte if is_word_byte(byte) => self.skip_word(),
            byte => self.advance(1, self.after_value && byte.is_ascii_whitespace()),
        }
    }

    fn rest(&self) -> &[u8] {
        &self.bytes[self.at.min(self.bytes.len())..]
    }

    fn advance(&mut self, bytes: usize, after_value: bool) {
        self.at += bytes;
        self.after_value = after_value;
    }

    fn open_bracket(&mut self, is_template: bool) {
        self.brackets.push(Bracket { is_template, ..Bracket::default() });
        self.advance(1, false);
    }

    fn close_bracket(&mut self) {
        if self.brackets.len() > 1 {
            self.brackets.pop();
        }
        self.advance(1, true);
    }

    fn skip_word(&mut self) {
        let length = self.rest().iter().take_while(|byte| is_word_byte(**byte)).count();
        // A `/` after one of these words begins a regular expression.
        let words_before_values: [&[u8]; 10] =
            [b"return", b"typeof", b"case", b"in", b"of", b"await", b"yield", b"void", b"delete", b"else"];
        let is_value = !words_before_values.contains(&&self.rest()[..length]);
        self.advance(length, is_value);
    }

    fn skip_string(&mut self, quote: u8) {
        self.at += 1;
        while let Some(byte) = self.bytes.get(self.at) {
            self.at += if *byte == b'\\' { 2 } else { 1 };
            if *byte == quote || *byte == b'\n' {
                break;
            }
        }
        self.after_value = true;
    }

    /// Skips a template from a back quote, or from the end of a `${}`, to the next `${` or to the end of the template.
    fn skip_template(&mut self) {
        if self.bytes.get(self.at) == Some(&b'`') {
            self.at += 1;
        }
        while let Some(byte) = self.bytes.get(self.at) {
            match byte {
                b'\\' => self.at += 1,
                b'`' => break,
                b'$' if self.bytes.get(self.at + 1) == Some(&b'{') => {
                    self.at += 1;
                    return self.open_bracket(true);
                }
                _ => {}
            }
            self.at += 1;
        }
        self.advance(1, true);
    }

    fn scan_slash(&mut self) {
        let rest = self.rest();
        if rest.starts_with(b"//") {
            self.at += rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
        } else if rest.starts_with(b"/*") {
            let end = rest.windows(2).skip(2).position(|pair| pair == b"*/");
            self.at += end.map_or(rest.len(), |end| end + 4);
        } else {
            self.skip_regular_expression_or_division();
        }
    }

    /// Skips a regular expression or a division sign. A slash after a bracket or a word may be either of them. The scan
    /// becomes uncertain if the two readings would count different brackets.
    fn skip_regular_expression_or_division(&mut self) {
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
        self.is_uncertain |= self.after_value && (has_brackets || has_comment) && expression.ends_with(b"/");
        self.advance(if self.after_value { 1 } else { length }, !self.after_value);
    }
}

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}
