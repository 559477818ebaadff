//! Capabilities between which nothing would decide: two lists that need the same, two methods of one name, two gets.
//! Invariant: what a program writes means one capability.

use std::collections::HashMap;

use indexmap::IndexMap;

use super::{Cx, Mistake, TOP};
use crate::codes;
use crate::model::{Capability, Entity, Kind};
use crate::read::raw;

impl Cx<'_> {
    pub(super) fn twins(&mut self, entities: &IndexMap<String, Entity>, capabilities: &IndexMap<String, Capability>) {
        let mut of: HashMap<&str, Vec<&Capability>> = HashMap::new();
        for capability in capabilities.values() {
            of.entry(&capability.entity).or_default().push(capability);
        }
        for name in entities.keys() {
            let mine = of.get(name.as_str()).map(Vec::as_slice).unwrap_or_default();
            for kind in [Kind::Query, Kind::Search] {
                self.lists(name, mine.iter().filter(|c| c.kind == kind));
            }
            if let Some(raw) = self.raw.entities.get(name) {
                self.primary_read(name, raw, mine);
                self.methods(raw, mine);
            }
        }
    }

    /// Two lists of one entity that ask for the same would leave it to chance which one `e1{}` means.
    fn lists<'c>(&mut self, entity: &str, lists: impl Iterator<Item = &'c &'c Capability>) {
        let mut seen: HashMap<Vec<&str>, &str> = HashMap::new();
        for list in lists {
            let text = list.text.as_deref();
            let mut needs: Vec<&str> = list.required().map(|p| p.name.as_str()).filter(|p| Some(*p) != text).collect();
            needs.sort_unstable();
            if let Some(first) = seen.get(&needs) {
                let message = format!(
                    "`{first}` and `{}` both list {entity} and need the same; make it one with optional filters",
                    list.name
                );
                let spot = TOP.key("capabilities").key(&list.name).here();
                self.report(Mistake::new(codes::TWO_LISTS, spot, message));
            } else {
                seen.insert(needs, &list.name);
            }
        }
    }

    fn methods(&mut self, raw: &raw::Entity, mine: &[&Capability]) {
        let mut seen: HashMap<String, &str> = HashMap::new();
        let all = TOP.key("capabilities");
        let primary = raw.primary_read.as_deref();
        let several = mine.iter().filter(|c| c.kind == Kind::Get).count() > 1;
        let called = |c: &Capability| match c.kind {
            Kind::Query | Kind::Search => false,
            Kind::Get => several && primary != Some(c.name.as_str()),
            _ => true,
        };
        for capability in mine.iter().filter(|c| called(c)) {
            let at = all.key(&capability.name);
            let short = capability.method_name().replace('-', "_");
            self.postfix(&at, &short, "method");
            if let Some(first) = seen.insert(short.clone(), &capability.name) {
                let message = format!("`{first}` and `{}` are both called `.{short}(…)`; rename one", capability.name);
                self.report(Mistake::new(codes::NAME, at.here(), message));
            }
        }
    }

    fn primary_read(&mut self, name: &str, raw: &raw::Entity, mine: &[&Capability]) {
        let gets: Vec<&str> = mine.iter().filter(|c| c.kind == Kind::Get).map(|c| c.name.as_str()).collect();
        let all = TOP.key("entities");
        let at = all.key(name);
        match &raw.primary_read {
            Some(named) if !gets.contains(&named.as_str()) => {
                let message = format!("`{named}` is not a get of {name}");
                let known = gets.iter().map(|get| (*get).to_owned());
                self.report(Mistake::new(codes::NAME, at.key("primary_read").value(), message).any_of(known));
            }
            None if gets.len() > 1 => {
                let message = format!("{name} has {} gets; say which one `{name}(key)` uses", gets.len());
                let copy = format!("primary_read: {}", gets[0]);
                self.report(Mistake::new(codes::TWO_LISTS, at.here(), message).write(copy));
            }
            _ => {}
        }
    }
}
