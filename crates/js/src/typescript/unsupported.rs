//! The TypeScript syntax that cannot be replaced with spaces because it has an effect at run time, and the messages
//! with the syntax to write instead.
//! Invariant: every error of this module is a `SyntaxError` with the line of the caller's source, like the errors of
//! the engine.

use ports::scripts::Thrown;

/// The file name of a run's source in the engine's stack traces.
const SOURCE_NAME: &str = "run.js";

#[derive(Debug, Clone, Copy)]
pub enum UnsupportedSyntax {
    Enum,
    Namespace,
    ParameterProperty,
    Decorator,
    ImportEquals,
    Import,
    Export,
    Assertion,
}

impl UnsupportedSyntax {
    pub fn to_error(self, source: &str, at: u32) -> Thrown {
        syntax_error(source, at as usize, self.message())
    }

    fn message(self) -> &'static str {
        match self {
            Self::Enum => "an enum is code, not a type; write `const Name = { A: 0, B: 1 } as const`",
            Self::Namespace => "a namespace with values is code, not a type; write `const Name = { … }`",
            Self::ParameterProperty => {
                "a parameter property is code, not a type; declare the field and assign it in the constructor"
            }
            Self::Decorator => "decorators are not available; call the function on the class instead",
            Self::ImportEquals => "`import =` is not available here; there are no modules",
            Self::Import => "`import` is not available here; there are no modules, only globals",
            Self::Export => "`export` is not available here; what is declared at the top level stays for the next run",
            Self::Assertion => "`<T>value` cannot be blanked here; write `(value) as T`",
        }
    }
}

/// Returns a `SyntaxError` at a position of the source, with the stack trace that the engine would write.
pub fn syntax_error(source: &str, at: usize, message: &str) -> Thrown {
    let before = source.get(..at).unwrap_or(source);
    let line_start = before.rfind('\n').map_or(0, |end| end + 1);
    let line = before.matches('\n').count() + 1;
    let column = before[line_start..].chars().count() + 1;
    Thrown {
        name: "SyntaxError".to_owned(),
        message: message.to_owned(),
        stack: format!("    at {SOURCE_NAME}:{line}:{column}\n"),
    }
}
