//! The contract: the lines before a table's rows that explain how to read the table and how to write a program.
//! Invariant: the lines have at most 400 tokens (o200k). Each line is written once, before the first wave whose rows need it.
//!
//! The wording was tested with models that had only these lines and a table and wrote correct programs at the first attempt
//! (docs/teaching.md). Change it only together with such a trial.

use catalog::{Capability, Entity};

use super::slot_types::is_long;
use crate::ledger::Ledger;
use crate::request::Catalogs;
use crate::settings::SlotStyle;
use crate::shown_slots::{RowSlots, leading_key_slots};

/// The features that the table rows of a session use. The contract explains only these features.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TableFeatures {
    /// The session has an entity, and therefore a table.
    entities: bool,
    /// An entity has a search.
    search: bool,
    /// An entity has a method.
    methods: bool,
    /// A method is an effect.
    effects: bool,
    /// A method has a parameter for long text, which a program writes as a block.
    blocks: bool,
    /// Several rows use the same multi-part key, so `e1(..)` replaces it.
    repeats_a_key: bool,
    /// Lists and calls start with a multi-part key without its last slot, and `..` replaces these slots. It is set only if
    /// enough rows use it to justify a sentence of the contract.
    pub abbreviates_keys: bool,
    /// An entity has a multi-part key. Its parts are not repeated among the fields.
    long_keys: bool,
}

/// The minimum number of rows with `..` at which the saved tokens exceed the cost of the explanation.
const MIN_ABBREVIATED_ROWS: usize = 6;

impl TableFeatures {
    pub fn of(ledger: &Ledger, catalogs: &Catalogs) -> Self {
        let mut features = Self { repeats_a_key: ledger.repeats_a_key(catalogs), ..Self::default() };
        let mut abbreviated_rows = 0;
        for (catalog, name) in ledger.exposed_entities(catalogs) {
            features.entities = true;
            features.search |= catalog.searches(name).next().is_some();
            let Some(entity) = catalog.entity(name) else { continue };
            features.long_keys |= entity.key.len() > 1;
            if catalog.get_of(name).is_some() {
                let lists = catalog.queries(name).chain(catalog.searches(name));
                abbreviated_rows += lists.filter(|c| starts_with_key(entity, c)).count();
            }
        }
        for (catalog, capability) in ledger.taught_methods(catalogs) {
            features.methods = true;
            features.effects |= !capability.kind.is_read();
            features.blocks |= capability.params.values().any(|p| is_long(&p.kind));
            let entity = catalog.entity(&capability.entity).filter(|_| !capability.needs_anchor());
            abbreviated_rows += usize::from(entity.is_some_and(|entity| starts_with_key(entity, capability)));
        }
        features.abbreviates_keys = abbreviated_rows >= MIN_ABBREVIATED_ROWS;
        features
    }
}

/// Returns whether the capability's row starts with the slots of the entity's key, without the last slot.
fn starts_with_key(entity: &Entity, capability: &Capability) -> bool {
    entity.key.len() > 2 && leading_key_slots(entity, &RowSlots::of(capability).filled) > 0
}

/// The examples in the contract lines, with slots in the style of the table.
struct ContractExamples {
    /// The filters after a search.
    search_filters: &'static str,
    /// A reference to a row by its key.
    reference: &'static str,
    /// The first line of a block of text.
    block: &'static str,
    /// A path through a reference.
    follow: &'static str,
    /// The steps that may follow an expression.
    steps: &'static str,
    /// An effect for each row.
    each: &'static str,
    /// A new row for each row.
    new_rows: &'static str,
    /// A template over rows.
    render: &'static str,
    /// How the right cells write slots.
    slots: &'static str,
    /// The sentence about keys of several parts.
    long_keys: &'static str,
}

const SYMBOL_EXAMPLES: ContractExamples = ContractExamples {
    search_filters: "e1~\"words\"{p7=1}",
    reference: "e1(p1=..)",
    block: "#   p5=<<TAG",
    follow: "a slot of type e#: issue.p13.p27",
    steps: ".filter{p4>=3, p5=true} .sort(p4, desc) .limit(5) .first() .distinct(p4) .aggregate(n=count, s=sum(p4)) .group_by(p4, n=count) [p1, p4]",
    each: "e1(p2=_.p2).m#()",
    new_rows: "{title: _.p10}",
    render: "rows[p9, p10] <<TAG renders a Jinja template over `rows` (r.p9)",
    slots: "name slots with types (no type: string)",
    long_keys: "",
};

const NAME_EXAMPLES: ContractExamples = ContractExamples {
    search_filters: "e1~\"words\"{year=1}",
    reference: "e1(id=..)",
    block: "#   note=<<TAG",
    follow: "a slot of type e#: issue.owner.name",
    steps: ".filter{votes>=3, done=true} .sort(votes, desc) .limit(5) .first() .distinct(owner) .aggregate(n=count, s=sum(votes)) .group_by(owner, n=count) [title, votes]",
    each: "e1(id=_.id).m#()",
    new_rows: "{title: _.name}",
    render: "rows[number, title] <<TAG renders a Jinja template over `rows` (r.number)",
    slots: "list slots with types (no type: string)",
    long_keys: " A key's slots are fields too.",
};

/// Returns the contract lines for the features that `now` has and `before` lacks.
pub fn lines(style: SlotStyle, before: TableFeatures, now: TableFeatures) -> Vec<String> {
    let examples = match style {
        SlotStyle::Symbols => SYMBOL_EXAMPLES,
        SlotStyle::Names => NAME_EXAMPLES,
    };
    if !before.entities {
        return if now.entities { first_lines(&examples, now) } else { Vec::new() };
    }
    let mut out = Vec::new();
    if now.search && !before.search {
        out.push(format!(
            "# e1~\"text\" searches: put real words there; opt slots after it: {}.",
            examples.search_filters
        ));
    }
    if now.repeats_a_key && !before.repeats_a_key && !before.abbreviates_keys && !now.abbreviates_keys {
        out.push(format!("# {REPEATED_KEY_SENTENCE}."));
    }
    if now.abbreviates_keys && !before.abbreviates_keys {
        out.push(format!("# {REPEATED_KEY_SENTENCE}; {ABBREVIATED_KEY_SENTENCE}."));
    }
    if now.long_keys && !before.long_keys && !examples.long_keys.is_empty() {
        out.push(format!("#{}", examples.long_keys));
    }
    if now.effects && !before.effects {
        out.push("# () is an effect; effects run in the order written. Call with .m#(slot=value).".to_owned());
        out.push(each_line(&examples));
    } else if now.methods && !before.methods {
        out.push("# Call with .m#(slot=value).".to_owned());
    }
    if now.blocks && !before.blocks {
        out.push("# Long text is a block:".to_owned());
        out.extend(block_lines(&examples));
    }
    out
}

/// The sentence for the feature `repeats_a_key`.
const REPEATED_KEY_SENTENCE: &str = "e1(..) has e1's key, spelled out in an earlier row";
/// The sentence for the feature `abbreviates_keys`. It continues the sentence `REPEATED_KEY_SENTENCE`.
const ABBREVIATED_KEY_SENTENCE: &str = "in {} and .m#() .. is that key without its last slot";

fn each_line(examples: &ContractExamples) -> String {
    format!("# rows => {} runs per row; rows => {} makes new rows.", examples.each, examples.new_rows)
}

fn block_lines(examples: &ContractExamples) -> [String; 3] {
    [examples.block.to_owned(), "#   any text".to_owned(), "#   TAG)".to_owned()]
}

/// Returns the contract lines of a session's first wave.
fn first_lines(examples: &ContractExamples, features: TableFeatures) -> Vec<String> {
    let order = if features.effects { "Effects run in the order written; lists" } else { "Lists" };
    let effect = if features.effects { ", () effect" } else { "" };
    let text = if features.search { " and \"text\" with real words" } else { "" };
    let keys = match (features.repeats_a_key, features.abbreviates_keys) {
        (_, true) => format!(" {REPEATED_KEY_SENTENCE}; {ABBREVIATED_KEY_SENTENCE}."),
        (true, false) => format!(" {REPEATED_KEY_SENTENCE}."),
        (false, false) => String::new(),
    };
    let long_keys = if features.long_keys { examples.long_keys } else { "" };
    let after =
        if features.search { format!(", or after a search: {}", examples.search_filters) } else { String::new() };
    let long = if features.blocks { ", or a block:" } else { "." };
    let call = if features.methods { " Call with .m#(slot=value)." } else { "" };
    let mut out = vec![
        format!(
            "# Write a program: lines `name = expr`, then one last line of results `expr, expr`. {order} read all pages."
        ),
        format!(
            "# Left cells are expressions to copy; right cells say what they return ([e1] many, e1 one{effect}) and {}.",
            examples.slots
        ),
        format!("# Replace every $ with a value{text}.{keys}{long_keys} opt slots go into the same {{}} or (){after}."),
        format!(
            "# Values: \"string\", 42, true, null, [a, b], a reference {}, an earlier name, name.slot{long}",
            examples.reference
        ),
    ];
    if features.blocks {
        out.extend(block_lines(examples));
    }
    out.push(format!(
        "# {{}} on e# filters at the API; comma means and. Follow with .r# or {}.{call}",
        examples.follow
    ));
    out.push(format!("# Then any of: {}; names you made (n) work like slots.", examples.steps));
    out.push(if features.effects {
        each_line(examples)
    } else {
        format!("# rows => {} makes new rows.", examples.new_rows)
    });
    out.push(format!("# text = {}; text.content is a string.", examples.render));
    out.push("# More rows: page(s0_pg1). Long runs: wait/cancel(s0_o1).".to_owned());
    out
}
