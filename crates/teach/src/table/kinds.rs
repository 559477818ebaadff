//! A slot's type as a table says it.
//! Invariant: never longer than a line of a table can bear; what was cut ends in `…`, and the checker knows the rest.

use catalog::{Catalog, TextStyle, Type};

use crate::ledger::Names;

/// Choices that are written out.
const CHOICES: usize = 10;
/// Characters of a parameter's type, which a program has to make.
const MADE: usize = 120;
/// Characters of a field's type, which a program only reads.
const READ: usize = 48;

/// Who needs to know a type.
#[derive(Clone, Copy)]
pub enum For {
    Field,
    Param,
}

/// With a space before it; a plain string is not written.
pub fn shown(names: &Names<'_>, catalog: &Catalog, kind: &Type, whom: For) -> String {
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
    let most = match whom {
        For::Field => READ,
        For::Param => MADE,
    };
    format!(" {}", cut(&text, most))
}

fn some(choices: &[String]) -> String {
    if choices.len() <= CHOICES {
        return choices.join("/");
    }
    format!("{}/…", choices[..CHOICES].join("/"))
}

fn cut(text: &str, most: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= most {
        return line;
    }
    line.chars().take(most).chain(['…']).collect()
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
        assert_eq!(some(&many), "c0/c1/c2/c3/c4/c5/c6/c7/c8/c9/…");
        assert_eq!(some(&many[..10]).matches('/').count(), 9);
        assert_eq!(cut(&"é".repeat(500), 48).chars().count(), 49);
        assert_eq!(cut("a\n b\tc", 48), "a b c");
    }
}
