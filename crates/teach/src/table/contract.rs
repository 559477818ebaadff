//! How to read the table and write a program: the lines before the rows that need them.
//! Invariant: at most 400 o200k tokens in all; a line stands before the first wave whose rows use what it explains, once.

use catalog::{Capability, TextStyle, Type};

use crate::ledger::{Catalogs, Ledger};

/// What the rows of a session use, so that nothing else is explained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Uses {
    entities: bool,
    search: bool,
    methods: bool,
    /// A slot that holds long text.
    blocks: bool,
}

impl Uses {
    pub fn of(ledger: &Ledger, catalogs: &Catalogs) -> Self {
        let mut uses = Self::default();
        for (catalog, entity) in ledger.exposed(catalogs) {
            uses.entities = true;
            uses.search |= catalog.searches(entity).next().is_some();
            uses.methods |= catalog.methods(entity).next().is_some();
            uses.blocks |= catalog.methods(entity).any(takes_text);
        }
        uses
    }
}

fn takes_text(capability: &Capability) -> bool {
    capability.params.values().any(|p| is_long(&p.kind))
}

/// Text that is better written as a block than as a string.
pub fn is_long(kind: &Type) -> bool {
    use TextStyle::{Document, Html, JsonText, Markdown};
    matches!(kind, Type::String(Markdown | Document | Html | JsonText))
}

/// The lines that `now` needs and `before` did not.
pub fn lines(before: Uses, now: Uses) -> Vec<String> {
    let mut out = Vec::new();
    if !before.entities {
        out.extend(basics(now));
        return out;
    }
    if now.search && !before.search {
        out.push("# e1~\"text\" searches: put real words there; opt slots after it: e1~\"words\"{p7=1}.".to_owned());
    }
    if now.methods && !before.methods {
        out.push("# () is an effect; effects run in the order written. Call with .m#(slot=value).".to_owned());
        out.push(EACH.to_owned());
    }
    if now.blocks && !before.blocks {
        out.extend(BLOCK.iter().map(|line| (*line).to_owned()));
    }
    out
}

const EACH: &str = "# rows => e1(p2=_.p2).m#(..) runs once per row; rows => {title: _.p10} makes new rows.";
const BLOCK: [&str; 4] = ["# Long text is a block:", "#   p5=<<TAG", "#   any text", "#   TAG)"];

fn basics(uses: Uses) -> Vec<String> {
    let order = if uses.methods { "Effects run in the order written; lists" } else { "Lists" };
    let effect = if uses.methods { ", () effect" } else { "" };
    let words = if uses.search { " and \"text\" with real words" } else { "" };
    let after = if uses.search { ", or after a search: e1~\"words\"{p7=1}" } else { "" };
    let block = if uses.blocks { ", or a block:" } else { "." };
    let call = if uses.methods { " Call with .m#(slot=value)." } else { "" };
    let mut out = vec![
        format!(
            "# Write a program: lines `name = expr`, then one last line of results `expr, expr`. {order} are read over all pages."
        ),
        format!(
            "# Left cells are expressions to copy; right cells say what they return ([e1] many, e1 one{effect}) and name slots with types (no type: string)."
        ),
        format!("# Replace every $ with a value{words}. opt slots go into the same {{}} or (){after}."),
        format!(
            "# Values: \"string\", 42, true, null, [a, b], e1(p1=..) for a reference, an earlier name, name.slot{block}"
        ),
    ];
    if uses.blocks {
        out.extend(BLOCK[1..].iter().map(|line| (*line).to_owned()));
    }
    out.push(format!(
        "# {{..}} on e# filters at the API; comma means and. Follow with .r# or a slot of type e#: issue.p13.p27.{call}"
    ));
    out.push(
        "# Then any of: .filter{p4>=3, p5=true} .sort(p4, desc) .limit(5) .first() .distinct(p4) .aggregate(n=count, s=sum(p4)) .group_by(p4, n=count) [p1, p4]; names you made (n) work like slots."
            .to_owned(),
    );
    out.push(if uses.methods { EACH.to_owned() } else { "# rows => {title: _.p10} makes new rows.".to_owned() });
    out.push(
        "# text = rows[p9, p10] <<TAG renders a Jinja template over `rows` (r.p9 or r.number); use text.content as a string."
            .to_owned(),
    );
    out.push("# More rows: page(s0_pg1). Long runs: wait(s0_o1), cancel(s0_o1).".to_owned());
    out
}
