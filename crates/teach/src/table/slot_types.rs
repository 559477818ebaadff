//! The type of a slot as a table writes it, such as `date`, `e4` or `open/doing/done`.
//! Invariant: each type has a maximum length. A cut type ends with `…`; the corrections of the checker contain the whole type.

use catalog::{Catalog, TextStyle, Type};

use crate::ledger::SymbolIndex;

/// The maximum number of choices in a type.
const MAX_CHOICES: usize = 10;
/// The maximum length in characters of a required parameter's type. It is the largest limit, because a program must construct
/// such a value.
const MAX_REQUIRED_TYPE_CHARS: usize = 120;
/// The maximum length in characters of an optional parameter's type.
const MAX_OPTIONAL_TYPE_CHARS: usize = 56;
/// The maximum length in characters of a field's type. It is the smallest limit, because programs only read fields and results
/// show their values.
const MAX_FIELD_TYPE_CHARS: usize = 48;

/// The use of a slot in a row. It decides how long the written type may be.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum SlotUse {
    /// The slot is a field of the result's rows.
    Field,
    /// The slot is a place to fill in the row's expression.
    Filled,
    /// The slot is an optional parameter.
    Optional,
}

/// Writes a space and the type. For a plain string nothing is written, because the contract states that a slot without a type
/// is a string.
pub fn write_type(out: &mut String, symbols: &SymbolIndex<'_>, catalog: &Catalog, kind: &Type, slot_use: SlotUse) {
    if matches!(kind, Type::String(TextStyle::Short)) {
        return;
    }
    out.push(' ');
    if let Some(word) = kind.word() {
        return out.push_str(word);
    }
    let start = out.len();
    match kind {
        Type::Ref(target) => write_reference(out, symbols, catalog, target),
        Type::Array(of) if matches!(of.as_ref(), Type::Ref(_) | Type::Select(_) | Type::Object(_)) => {
            out.push('[');
            write_item_type(out, symbols, catalog, of, slot_use);
            out.push(']');
        }
        Type::MultiSelect(choices) => {
            out.push('[');
            write_choices(out, choices);
            out.push(']');
        }
        other => write_item_type(out, symbols, catalog, other, slot_use),
    }
    let most = match slot_use {
        SlotUse::Field => MAX_FIELD_TYPE_CHARS,
        SlotUse::Filled => MAX_REQUIRED_TYPE_CHARS,
        SlotUse::Optional => MAX_OPTIONAL_TYPE_CHARS,
    };
    shorten(out, start, most);
}

fn write_item_type(out: &mut String, symbols: &SymbolIndex<'_>, catalog: &Catalog, kind: &Type, slot_use: SlotUse) {
    match kind {
        Type::Ref(target) => write_reference(out, symbols, catalog, target),
        Type::Select(choices) => write_choices(out, choices),
        // To read a field, a program only needs the names in the object, so their types are not written.
        Type::Object(slots) if slot_use == SlotUse::Field => {
            out.push('{');
            for (position, name) in slots.keys().enumerate() {
                out.push_str(if position == 0 { "" } else { ", " });
                out.push_str(name);
            }
            out.push('}');
        }
        other => out.push_str(&other.describe()),
    }
}

fn write_reference(out: &mut String, symbols: &SymbolIndex<'_>, catalog: &Catalog, target: &str) {
    match symbols.entity(&catalog.id, target) {
        Some(number) => write_symbol(out, 'e', number),
        None => out.push_str(target),
    }
}

/// Writes a symbol such as `e4` or `p7`. It avoids `format!`, which is slow for the thousands of symbols in a table.
pub fn write_symbol(out: &mut String, letter: char, mut number: usize) {
    out.push(letter);
    let mut digits = [0_u8; 20];
    let mut first = digits.len();
    while number > 0 || first == digits.len() {
        first -= 1;
        digits[first] = b'0' + (number % 10) as u8;
        number /= 10;
    }
    out.extend(digits[first..].iter().map(|digit| char::from(*digit)));
}

fn write_choices(out: &mut String, choices: &[String]) {
    for (position, choice) in choices.iter().take(MAX_CHOICES).enumerate() {
        out.push_str(if position == 0 { "" } else { "/" });
        out.push_str(choice);
    }
    if choices.len() > MAX_CHOICES {
        out.push_str("/…");
    }
}

/// Joins the lines of `out` from byte position `start` on, and cuts this text to `most` characters.
fn shorten(out: &mut String, start: usize, most: usize) {
    let text = &out[start..];
    if text.len() <= most && !text.contains(['\n', '\t', '\r']) && !text.contains("  ") {
        return;
    }
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    out.truncate(start);
    if line.chars().count() <= most {
        return out.push_str(&line);
    }
    out.extend(line.chars().take(most));
    // The text is cut after a whole choice or slot, because a model would read a part of a name as a name.
    let end_of_last = |separator: &str| out[start..].rfind(separator).map(|at| start + at + separator.len());
    if let Some(end) = end_of_last("/").max(end_of_last(", ")) {
        out.truncate(end);
    }
    out.push('…');
}

/// Returns whether values of the type are long texts. A program writes such values as blocks.
pub fn is_long(kind: &Type) -> bool {
    use TextStyle::{Document, Html, JsonText, Markdown};
    matches!(kind, Type::String(Markdown | Document | Html | JsonText))
}

#[cfg(test)]
mod tests {
    use super::{shorten, write_choices, write_symbol};

    fn written(write: impl FnOnce(&mut String)) -> String {
        let mut out = String::new();
        write(&mut out);
        out
    }

    #[test]
    fn long_types_are_cut_after_a_whole_part() {
        let many: Vec<String> = (0..40).map(|n| format!("c{n}")).collect();
        assert_eq!(written(|out| write_choices(out, &many)), "c0/c1/c2/c3/c4/c5/c6/c7/c8/c9/…");
        assert_eq!(written(|out| write_choices(out, &many[..10])).matches('/').count(), 9);
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
    fn a_symbol_is_a_letter_and_a_number() {
        assert_eq!([0, 7, 10, 1481].map(|n| written(|out| write_symbol(out, 'p', n))), ["p0", "p7", "p10", "p1481"]);
    }
}
