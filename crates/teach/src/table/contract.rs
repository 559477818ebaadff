//! How to read the table and write a program: the lines before the rows that need them.
//! Invariant: at most 400 o200k tokens in all; a line stands before the first wave whose rows use what it explains, once.
//!
//! Readers who had nothing but these lines and a table wrote right programs on the first try (the design's trial, which used
//! symbols): change the wording only with a trial like that one.

use catalog::{Capability, Entity};

use super::kinds::is_long;
use crate::ledger::Ledger;
use crate::seed::Catalogs;
use crate::settings::SlotStyle;
use crate::shown_slots::{RowSlots, leading_key_slots};

/// What the rows of a session use, so that nothing else is explained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TableFeatures {
    entities: bool,
    search: bool,
    /// Something is called by name.
    methods: bool,
    /// Something that is called changes something.
    effects: bool,
    /// A slot that holds long text.
    blocks: bool,
    /// A key of several parts that more than one row needs: it is spelled out once.
    keys: bool,
    /// Lists and calls that begin with all slots of such a key but its last, enough of them to be worth a sentence.
    pub leads: bool,
    /// A key of several parts, whose slots are not named once more among the fields.
    compound: bool,
}

/// So many rows save as much as it costs to say how they are read.
const WORTH_A_SENTENCE: usize = 6;

impl TableFeatures {
    pub fn of(ledger: &Ledger, catalogs: &Catalogs) -> Self {
        let mut uses = Self { keys: ledger.repeats_a_key(catalogs), ..Self::default() };
        let mut led_calls = 0;
        for (catalog, name) in ledger.exposed_entities(catalogs) {
            uses.entities = true;
            uses.search |= catalog.searches(name).next().is_some();
            let Some(entity) = catalog.entity(name) else { continue };
            uses.compound |= entity.key.len() > 1;
            if catalog.get_of(name).is_some() {
                led_calls +=
                    catalog.queries(name).chain(catalog.searches(name)).filter(|c| starts_with_key(entity, c)).count();
            }
        }
        for (catalog, capability) in ledger.taught_methods(catalogs) {
            uses.methods = true;
            uses.effects |= !capability.kind.is_read();
            uses.blocks |= takes_text(capability);
            let entity = catalog.entity(&capability.entity).filter(|_| !capability.needs_anchor());
            led_calls += usize::from(entity.is_some_and(|entity| starts_with_key(entity, capability)));
        }
        uses.leads = led_calls >= WORTH_A_SENTENCE;
        uses
    }
}

fn starts_with_key(entity: &Entity, capability: &Capability) -> bool {
    entity.key.len() > 2 && leading_key_slots(entity, &RowSlots::of(capability).filled) > 0
}

fn takes_text(capability: &Capability) -> bool {
    capability.params.values().any(|p| is_long(&p.kind))
}

/// The examples of the lines, by symbol or by name.
struct Words {
    opt: &'static str,
    key: &'static str,
    block: &'static str,
    follow: &'static str,
    then: &'static str,
    each: &'static str,
    made: &'static str,
    render: &'static str,
    slots: &'static str,
    /// What is said where keys have several parts.
    compound: &'static str,
}

const SYMBOLS: Words = Words {
    opt: "e1~\"words\"{p7=1}",
    key: "e1(p1=..)",
    block: "#   p5=<<TAG",
    follow: "a slot of type e#: issue.p13.p27",
    then: ".filter{p4>=3, p5=true} .sort(p4, desc) .limit(5) .first() .distinct(p4) .aggregate(n=count, s=sum(p4)) .group_by(p4, n=count) [p1, p4]",
    each: "e1(p2=_.p2).m#()",
    made: "{title: _.p10}",
    render: "rows[p9, p10] <<TAG renders a Jinja template over `rows` (r.p9)",
    slots: "name slots with types (no type: string)",
    compound: "",
};

const NAMES: Words = Words {
    opt: "e1~\"words\"{year=1}",
    key: "e1(id=..)",
    block: "#   note=<<TAG",
    follow: "a slot of type e#: issue.owner.name",
    then: ".filter{votes>=3, done=true} .sort(votes, desc) .limit(5) .first() .distinct(owner) .aggregate(n=count, s=sum(votes)) .group_by(owner, n=count) [title, votes]",
    each: "e1(id=_.id).m#()",
    made: "{title: _.name}",
    render: "rows[number, title] <<TAG renders a Jinja template over `rows` (r.number)",
    slots: "list slots with types (no type: string)",
    compound: " A key's slots are fields too.",
};

/// The lines that `now` needs and `before` did not.
pub fn lines(style: SlotStyle, before: TableFeatures, now: TableFeatures) -> Vec<String> {
    let words = match style {
        SlotStyle::Symbols => SYMBOLS,
        SlotStyle::Names => NAMES,
    };
    if !before.entities {
        return if now.entities { basics(&words, now) } else { Vec::new() };
    }
    let mut out = Vec::new();
    if now.search && !before.search {
        out.push(format!("# e1~\"text\" searches: put real words there; opt slots after it: {}.", words.opt));
    }
    if now.keys && !before.keys && !before.leads && !now.leads {
        out.push(format!("# {KEYS}."));
    }
    if now.leads && !before.leads {
        out.push(format!("# {KEYS}; {LEADS}."));
    }
    if now.compound && !before.compound && !words.compound.is_empty() {
        out.push(format!("#{}", words.compound));
    }
    if now.effects && !before.effects {
        out.push("# () is an effect; effects run in the order written. Call with .m#(slot=value).".to_owned());
        out.push(each(&words));
    } else if now.methods && !before.methods {
        out.push("# Call with .m#(slot=value).".to_owned());
    }
    if now.blocks && !before.blocks {
        out.push("# Long text is a block:".to_owned());
        out.extend(block(&words));
    }
    out
}

const KEYS: &str = "e1(..) has e1's key, spelled out in an earlier row";
const LEADS: &str = "in {} and .m#() .. is that key without its last slot";

fn each(words: &Words) -> String {
    format!("# rows => {} runs per row; rows => {} makes new rows.", words.each, words.made)
}

fn block(words: &Words) -> [String; 3] {
    [words.block.to_owned(), "#   any text".to_owned(), "#   TAG)".to_owned()]
}

fn basics(words: &Words, uses: TableFeatures) -> Vec<String> {
    let order = if uses.effects { "Effects run in the order written; lists" } else { "Lists" };
    let effect = if uses.effects { ", () effect" } else { "" };
    let text = if uses.search { " and \"text\" with real words" } else { "" };
    let keys = match (uses.keys, uses.leads) {
        (_, true) => format!(" {KEYS}; {LEADS}."),
        (true, false) => format!(" {KEYS}."),
        (false, false) => String::new(),
    };
    let compound = if uses.compound { words.compound } else { "" };
    let after = if uses.search { format!(", or after a search: {}", words.opt) } else { String::new() };
    let long = if uses.blocks { ", or a block:" } else { "." };
    let call = if uses.methods { " Call with .m#(slot=value)." } else { "" };
    let mut out = vec![
        format!(
            "# Write a program: lines `name = expr`, then one last line of results `expr, expr`. {order} read all pages."
        ),
        format!(
            "# Left cells are expressions to copy; right cells say what they return ([e1] many, e1 one{effect}) and {}.",
            words.slots
        ),
        format!("# Replace every $ with a value{text}.{keys}{compound} opt slots go into the same {{}} or (){after}."),
        format!(
            "# Values: \"string\", 42, true, null, [a, b], a reference {}, an earlier name, name.slot{long}",
            words.key
        ),
    ];
    if uses.blocks {
        out.extend(block(words));
    }
    out.push(format!("# {{}} on e# filters at the API; comma means and. Follow with .r# or {}.{call}", words.follow));
    out.push(format!("# Then any of: {}; names you made (n) work like slots.", words.then));
    out.push(if uses.effects { each(words) } else { format!("# rows => {} makes new rows.", words.made) });
    out.push(format!("# text = {}; text.content is a string.", words.render));
    out.push("# More rows: page(s0_pg1). Long runs: wait/cancel(s0_o1).".to_owned());
    out
}
