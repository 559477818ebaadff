//! Names and values as a plan shows them.
//! Invariant: a value that is known is shown as JSON, a hole as where it comes from; long ones are clipped.

use super::{Expr, Function, Returned, Spec, Step, Take};

/// What each step is called: by the program, by the result that it is, or by its number.
pub(super) fn names(steps: &[Step], returns: &[Returned]) -> Vec<String> {
    let one = |(at, step): (usize, &Step)| {
        let returned = returns.iter().find(|r| r.step == at).map(|r| r.label.clone());
        step.label.clone().or(returned).unwrap_or_else(|| format!("#{:02}", at + 1))
    };
    steps.iter().enumerate().map(one).collect()
}

/// A value, with steps by their numbers.
pub(crate) fn shown(value: &Expr) -> String {
    shown_with(value, &|step| format!("n{step}"))
}

pub(super) fn shown_with(value: &Expr, name: &dyn Fn(usize) -> String) -> String {
    let joined = |items: Vec<String>| items.join(", ");
    match value {
        Expr::Value(value) => clip(&value.to_string()),
        Expr::Step { step, take, many } => {
            let each = if *many { "each " } else { "" };
            format!("{each}{}{}", name(*step), taken(take))
        }
        Expr::Row(take) => format!("_{}", taken(take)),
        Expr::List(items) => format!("[{}]", joined(items.iter().map(|i| shown_with(i, name)).collect())),
        Expr::Object(pairs) => {
            format!("{{{}}}", joined(pairs.iter().map(|(k, v)| format!("{k}: {}", shown_with(v, name))).collect()))
        }
        Expr::Template { source, .. } => clip(&serde_json::Value::from(source.as_str()).to_string()),
        Expr::Read { steps, take } => {
            let inner = super::explain::read(steps, name);
            format!("({inner}){}", taken(take))
        }
    }
}

fn taken(take: &Take) -> String {
    match take {
        Take::Path(path) if path.is_empty() => String::new(),
        Take::Path(path) => format!(".{}", path.join(".")),
        Take::Key(_) => String::new(),
    }
}

/// `n=count, total=sum(votes)`
pub(crate) fn specs(specs: &[Spec]) -> String {
    let one = |spec: &Spec| {
        let function = match spec.function {
            Function::Count => "count",
            Function::Sum => "sum",
            Function::Avg => "avg",
            Function::Min => "min",
            Function::Max => "max",
        };
        match &spec.path {
            Some(path) => format!("{}={function}({})", spec.name, path.join(".")),
            None => format!("{}={function}", spec.name),
        }
    };
    specs.iter().map(one).collect::<Vec<_>>().join(", ")
}

pub(super) fn clip(text: &str) -> String {
    if text.chars().count() <= 60 { text.to_owned() } else { text.chars().take(59).chain(['…']).collect() }
}
