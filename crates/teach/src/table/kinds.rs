//! A slot's type as a table says it.
//! Invariant: never longer than a line of a table can bear; what was cut ends in `…`, and the checker knows the rest.

use catalog::{Catalog, TextStyle, Type};

use crate::ledger::Names;

/// Choices that are written out.
const CHOICES: usize = 12;
/// Characters of a type.
const LENGTH: usize = 160;

/// With a space before it; a plain string is not written.
pub fn shown(names: &Names<'_>, catalog: &Catalog, kind: &Type) -> String {
    let text = match kind {
        Type::String(TextStyle::Short) => return String::new(),
        Type::Ref(target) => names.entity(&catalog.id, target).unwrap_or_else(|| target.clone()),
        Type::Array(of) => match of.as_ref() {
            Type::Ref(target) => format!("[{}]", names.entity(&catalog.id, target).unwrap_or_else(|| target.clone())),
            Type::Select(choices) => format!("[{}]", some(choices)),
            _ => kind.describe(),
        },
        Type::Select(choices) => some(choices),
        Type::MultiSelect(choices) => format!("[{}]", some(choices)),
        other => other.describe(),
    };
    format!(" {}", cut(&text))
}

fn some(choices: &[String]) -> String {
    if choices.len() <= CHOICES {
        return choices.join("/");
    }
    format!("{}/…", choices[..CHOICES].join("/"))
}

fn cut(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= LENGTH {
        return line;
    }
    line.chars().take(LENGTH).chain(['…']).collect()
}

/// Text that is better written as a block than as a string.
pub fn is_long(kind: &Type) -> bool {
    use TextStyle::{Document, Html, JsonText, Markdown};
    matches!(kind, Type::String(Markdown | Document | Html | JsonText))
}

#[cfg(test)]
mod tests {
    use super::{cut, some};

    #[test]
    fn long_types_are_cut() {
        let many: Vec<String> = (0..40).map(|n| format!("c{n}")).collect();
        assert_eq!(some(&many), "c0/c1/c2/c3/c4/c5/c6/c7/c8/c9/c10/c11/…");
        assert_eq!(some(&many[..12]).matches('/').count(), 11);
        assert_eq!(cut(&"é".repeat(500)).chars().count(), 161);
        assert_eq!(cut("a\n b\tc"), "a b c");
    }
}
