//! A slot's type as a table says it.
//! Invariant: never longer than a line of a table can bear; what was cut ends in `…`, and the checker knows the rest.

use catalog::{Catalog, TextStyle, Type};

use crate::ledger::SymbolIndex;

/// Choices that are written out.
const CHOICES: usize = 10;
/// Characters of the type of a parameter that a program has to make, of one that it may leave out, and of a field, which it
/// only reads.
const REQUIRED: usize = 120;
const OPTIONAL: usize = 56;
const FIELD: usize = 48;

/// Who needs to know a type.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum SlotUse {
    Field,
    Filled,
    Optional,
}

/// With a space before it; a plain string is not written.
pub fn write(out: &mut String, names: &SymbolIndex<'_>, catalog: &Catalog, kind: &Type, slot_use: SlotUse) {
    if matches!(kind, Type::String(TextStyle::Short)) {
        return;
    }
    out.push(' ');
    if let Some(word) = kind.word() {
        return out.push_str(word);
    }
    let from = out.len();
    match kind {
        Type::Ref(target) => write_reference(out, names, catalog, target),
        Type::Array(of) if matches!(of.as_ref(), Type::Ref(_) | Type::Select(_) | Type::Object(_)) => {
            out.push('[');
            write_item_type(out, names, catalog, of, slot_use);
            out.push(']');
        }
        Type::MultiSelect(choices) => {
            out.push('[');
            write_choices(out, choices);
            out.push(']');
        }
        other => write_item_type(out, names, catalog, other, slot_use),
    }
    let most = match slot_use {
        SlotUse::Field => FIELD,
        SlotUse::Filled => REQUIRED,
        SlotUse::Optional => OPTIONAL,
    };
    shorten(out, from, most);
}

fn write_item_type(out: &mut String, names: &SymbolIndex<'_>, catalog: &Catalog, kind: &Type, slot_use: SlotUse) {
    match kind {
        Type::Ref(target) => write_reference(out, names, catalog, target),
        Type::Select(choices) => write_choices(out, choices),
        // Who reads it needs the names, and sees the values.
        Type::Object(slots) if slot_use == SlotUse::Field => {
            out.push('{');
            for (at, name) in slots.keys().enumerate() {
                out.push_str(if at == 0 { "" } else { ", " });
                out.push_str(name);
            }
            out.push('}');
        }
        other => out.push_str(&other.describe()),
    }
}

fn write_reference(out: &mut String, names: &SymbolIndex<'_>, catalog: &Catalog, target: &str) {
    match names.entity(&catalog.id, target) {
        Some(n) => write_symbol(out, 'e', n),
        None => out.push_str(target),
    }
}

/// `e4`, `p7`.
pub fn write_symbol(out: &mut String, letter: char, mut n: usize) {
    out.push(letter);
    let mut digits = [0_u8; 20];
    let mut at = digits.len();
    while n > 0 || at == digits.len() {
        at -= 1;
        digits[at] = b'0' + (n % 10) as u8;
        n /= 10;
    }
    out.extend(digits[at..].iter().map(|digit| char::from(*digit)));
}

fn write_choices(out: &mut String, choices: &[String]) {
    for (at, choice) in choices.iter().take(CHOICES).enumerate() {
        out.push_str(if at == 0 { "" } else { "/" });
        out.push_str(choice);
    }
    if choices.len() > CHOICES {
        out.push_str("/…");
    }
}

/// What was written since `from`, on one line and not too long.
fn shorten(out: &mut String, from: usize, most: usize) {
    let text = &out[from..];
    if text.len() <= most && !text.contains(['\n', '\t', '\r']) && !text.contains("  ") {
        return;
    }
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    out.truncate(from);
    if line.chars().count() <= most {
        return out.push_str(&line);
    }
    out.extend(line.chars().take(most));
    // Half a word helps nobody.
    let whole = |sign: &str| out[from..].rfind(sign).map(|at| from + at + sign.len());
    if let Some(end) = whole("/").max(whole(", ")) {
        out.truncate(end);
    }
    out.push('…');
}

/// Text that is better written as a block than as a string.
pub fn is_long(kind: &Type) -> bool {
    use TextStyle::{Document, Html, JsonText, Markdown};
    matches!(kind, Type::String(Markdown | Document | Html | JsonText))
}

#[cfg(test)]
mod tests {
    use super::{shorten, write_choices, write_symbol};

    fn made(write: impl FnOnce(&mut String)) -> String {
        let mut out = String::new();
        write(&mut out);
        out
    }

    #[test]
    fn long_types_are_cut() {
        let many: Vec<String> = (0..40).map(|n| format!("c{n}")).collect();
        assert_eq!(made(|out| write_choices(out, &many)), "c0/c1/c2/c3/c4/c5/c6/c7/c8/c9/…");
        assert_eq!(made(|out| write_choices(out, &many[..10])).matches('/').count(), 9);
        let shortened = |text: &str| {
            let mut out = format!("before {text}");
            shorten(&mut out, 7, 48);
            out
        };
        assert_eq!(shortened(&"é".repeat(500)).chars().count(), 7 + 49);
        assert_eq!(shortened("a\n b\tc"), "before a b c");
        assert_eq!(shortened(&"opened/closed/".repeat(9)), format!("before {}…", "opened/closed/".repeat(3)));
        assert_eq!(shortened(&format!("{{name, {}}}", "x".repeat(60))), "before {name, …");
    }

    #[test]
    fn symbols_are_numbered() {
        assert_eq!([0, 7, 10, 1481].map(|n| made(|out| write_symbol(out, 'p', n))), ["p0", "p7", "p10", "p1481"]);
    }
}
