//! Whether a source may be given to the parser: it tries again where TypeScript is ambiguous, at worst twice as often with
//! each bracket that has a `<` before the next one opens, and `(a=b<` thirty times over would never end.
//! Invariant: brackets are counted as the parser will see them. Where that is in doubt, every `<` counts for itself.

/// Brackets within brackets. The parser's time grows with its square.
const MOST_DEPTH: usize = 128;
/// `<` that no `>` has closed, in one bracket. Again its square.
const MOST_PENDING: usize = 200;
/// Brackets with a `<` in them, within each other. The parser's time doubles with each.
const MOST_CHOICES: usize = 9;

pub fn is_tame(source: &str) -> bool {
    let mut scan = Scan { bytes: source.as_bytes(), at: 0, frames: vec![Frame::default()], value: false, doubt: false };
    while scan.at < scan.bytes.len() {
        scan.token();
        let choices = scan.frames.iter().filter(|frame| frame.choice).count();
        let pending = scan.frames.last().map_or(0, |frame| frame.pending);
        if scan.frames.len() > MOST_DEPTH || choices > MOST_CHOICES || pending > MOST_PENDING {
            return false;
        }
    }
    !scan.doubt || source.matches('<').count() <= MOST_CHOICES
}

#[derive(Default)]
struct Frame {
    /// Whether it has seen a `<`.
    choice: bool,
    /// How many of them no `>` has closed.
    pending: usize,
    /// Whether it is a `${` of a template.
    template: bool,
}

struct Scan<'s> {
    bytes: &'s [u8],
    at: usize,
    frames: Vec<Frame>,
    /// Whether a value was just read, so that `/` divides.
    value: bool,
    doubt: bool,
}

impl Scan<'_> {
    fn token(&mut self) {
        let byte = self.bytes[self.at];
        match byte {
            b'(' | b'[' | b'{' => self.open(false),
            b'}' if self.frames.last().is_some_and(|frame| frame.template) => {
                self.close();
                self.template();
            }
            b')' | b']' | b'}' => self.close(),
            b'\'' | b'"' => self.string(byte),
            b'`' => self.template(),
            b'/' => self.slash(),
            b'<' => {
                // A comment of HTML hides what follows it, in some sources.
                self.doubt |= self.rest().starts_with(b"<!--");
                if let Some(frame) = self.frames.last_mut() {
                    frame.choice = true;
                    frame.pending += 1;
                }
                self.step(1, false);
            }
            b'>' => {
                if let Some(frame) = self.frames.last_mut() {
                    frame.pending = frame.pending.saturating_sub(1);
                }
                self.step(1, false);
            }
            b'-' => {
                self.doubt |= self.rest().starts_with(b"-->");
                self.step(1, false);
            }
            byte if is_word(byte) => self.word(),
            byte => self.step(1, self.value && byte.is_ascii_whitespace()),
        }
    }

    fn rest(&self) -> &[u8] {
        &self.bytes[self.at.min(self.bytes.len())..]
    }

    fn step(&mut self, bytes: usize, value: bool) {
        self.at += bytes;
        self.value = value;
    }

    fn open(&mut self, template: bool) {
        self.frames.push(Frame { template, ..Frame::default() });
        self.step(1, false);
    }

    fn close(&mut self) {
        if self.frames.len() > 1 {
            self.frames.pop();
        }
        self.step(1, true);
    }

    fn word(&mut self) {
        let length = self.rest().iter().take_while(|byte| is_word(**byte)).count();
        let before_value: [&[u8]; 10] =
            [b"return", b"typeof", b"case", b"in", b"of", b"await", b"yield", b"void", b"delete", b"else"];
        let value = !before_value.contains(&&self.rest()[..length]);
        self.step(length, value);
    }

    fn string(&mut self, quote: u8) {
        self.at += 1;
        while let Some(byte) = self.bytes.get(self.at) {
            self.at += if *byte == b'\\' { 2 } else { 1 };
            if *byte == quote || *byte == b'\n' {
                break;
            }
        }
        self.value = true;
    }

    /// From a back quote, or from the end of a `${}`, to the next `${` or to the end.
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
            self.expression_or_division();
        }
    }

    /// After a bracket or a word it may be either: in doubt where the two would be read differently.
    fn expression_or_division(&mut self) {
        let mut class = false;
        let end = self.rest().iter().skip(1).scan(false, |escaped, byte| {
            let plain = !*escaped;
            *escaped = plain && *byte == b'\\';
            class = if plain { (class || *byte == b'[') && *byte != b']' } else { class };
            Some(*byte == b'\n' || (plain && !class && *byte == b'/'))
        });
        let length = end.take_while(|end| !end).count() + 2;
        let body = &self.rest()[..length.min(self.rest().len())];
        let marks =
            body.iter().any(|byte| b"()[]{}'\"`<".contains(byte)) || body[1..].windows(2).any(|pair| pair == b"/*");
        self.doubt |= self.value && marks && body.ends_with(b"/");
        self.step(if self.value { 1 } else { length }, !self.value);
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}
