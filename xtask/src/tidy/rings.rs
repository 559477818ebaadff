//! Rule `rings`: the top-level modules of a crate use each other in one direction only.
//! Invariant: a name that is no module counts for nothing, so what lib.rs re-exports makes no ring.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use proc_macro2::Delimiter;

use super::Finding;
use super::source::{SourceFile, Tree};
use super::tokens::{self, Kind, Token};

const RULE: &str = "rings";

pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut crates: BTreeMap<&str, Graph> = BTreeMap::new();
    let code = tree.files.iter().filter(|file| file.in_src && !file.is_test && !in_bin(file));
    for file in code {
        crates.entry(file.owner.as_deref().unwrap_or_default()).or_default().add(file);
    }
    crates.into_iter().flat_map(|(name, graph)| graph.findings(name)).collect()
}

/// `src/bin/x.rs` is a crate of its own.
fn in_bin(file: &SourceFile) -> bool {
    file.path.contains("/src/bin/")
}

#[derive(Default)]
struct Graph<'a> {
    modules: BTreeSet<String>,
    /// From module to name, with the first place; a name that turns out to be no module is dropped.
    uses: BTreeMap<String, BTreeMap<String, (&'a str, usize)>>,
}

impl<'a> Graph<'a> {
    fn add(&mut self, file: &'a SourceFile) {
        let module = module_of(file);
        self.modules.extend(module.first().cloned());
        self.walk(file, file.tokens(), &module);
    }

    fn walk(&mut self, file: &'a SourceFile, level: &[Token], module: &[String]) {
        for (at, token) in level.iter().enumerate() {
            if file.is_test_line(token.line) {
                continue;
            }
            let before = at.checked_sub(1).map(|index| &level[index]);
            match &token.kind {
                Kind::Group(Delimiter::Brace, inner) if opens_module(level, at).is_some() => {
                    let name = opens_module(level, at).map(String::from);
                    let inside: Vec<String> = module.iter().cloned().chain(name).collect();
                    self.modules.extend(inside.first().cloned());
                    self.walk(file, inner, &inside);
                }
                // The braces of `use a::{…}` were read with the path before them.
                Kind::Group(Delimiter::Brace, _) if before.is_some_and(Token::path) => {}
                Kind::Group(_, inner) => self.walk(file, inner, module),
                // `pub(in crate::a)` gives, it does not use.
                Kind::Word(_) if at == 1 && level[0].is("in") => {}
                Kind::Word(_) if before.is_some_and(Token::path) => {}
                Kind::Word(_) => self.resolve(file, &level[at..], (module, module)),
                _ => {}
            }
        }
    }

    /// Follows a path that starts with `crate`, `self` or `super`; `base` is the module reached so far.
    fn resolve(&mut self, file: &'a SourceFile, path: &[Token], (module, base): (&[String], &[String])) {
        let [first, separator, rest @ ..] = path else { return };
        let reached = match first.word() {
            Some("crate") => &[],
            Some("self") => base,
            Some("super") => &base[..base.len().saturating_sub(1)],
            _ => return,
        };
        if !separator.path() {
            return;
        }
        let branches = match rest.first().and_then(|token| token.group(Delimiter::Brace)) {
            Some(group) => tokens::parts(group).collect(),
            None => vec![rest],
        };
        for branch in branches {
            match branch.first().and_then(Token::word) {
                Some("super" | "self") => self.resolve(file, branch, (module, reached)),
                Some(name) if reached.is_empty() => self.note(file, (module, name), branch[0].line),
                _ => {}
            }
        }
    }

    fn note(&mut self, file: &'a SourceFile, (module, name): (&[String], &str), line: usize) {
        let Some(from) = module.first().filter(|from| *from != name) else {
            return;
        };
        self.uses.entry(from.clone()).or_default().entry(name.to_string()).or_insert((&file.path, line));
    }

    fn findings(mut self, name: &str) -> Vec<Finding> {
        for uses in self.uses.values_mut() {
            uses.retain(|to, _| self.modules.contains(to));
        }
        let rings: BTreeSet<Vec<&str>> = self.uses.keys().filter_map(|module| self.ring(module)).collect();
        rings.iter().map(|ring| self.finding(name, ring)).collect()
    }

    /// The shortest way from the module back to itself, turned so that the least name comes first.
    fn ring<'g>(&'g self, module: &'g str) -> Option<Vec<&'g str>> {
        let mut came_from: BTreeMap<&str, &str> = BTreeMap::new();
        let mut queue = VecDeque::from([module]);
        while let Some(from) = queue.pop_front() {
            for to in self.uses.get(from).into_iter().flat_map(BTreeMap::keys) {
                if !came_from.contains_key(to.as_str()) {
                    came_from.insert(to, from);
                    queue.push_back(to);
                }
            }
        }
        let mut ring = vec![*came_from.get(module)?];
        while let Some(&last) = ring.last().filter(|last| **last != module) {
            ring.push(came_from.get(last)?);
        }
        ring.reverse();
        let least = ring.iter().enumerate().min_by_key(|(_, name)| **name).map_or(0, |(index, _)| index);
        ring.rotate_left(least);
        Some(ring)
    }

    fn finding(&self, name: &str, ring: &[&str]) -> Finding {
        let steps: Vec<(&str, &str)> = ring.iter().copied().zip(ring.iter().copied().cycle().skip(1)).collect();
        let place =
            |(from, to): (&str, &str)| self.uses.get(from).and_then(|uses| uses.get(to)).copied().unwrap_or_default();
        let drawn: Vec<String> = steps
            .iter()
            .map(|step| {
                let (path, line) = place(*step);
                format!("{} -> {} ({path}:{line})", step.0, step.1)
            })
            .collect();
        let wrong = format!("modules of `{name}` use each other in a ring: {}", drawn.join(", "));
        Finding::new(RULE, place(steps[0]), wrong, "move what is shared to a module that both use")
    }
}

/// The name of the module whose block stands at this index.
fn opens_module(level: &[Token], at: usize) -> Option<&str> {
    let keyword = level.get(at.checked_sub(2)?)?;
    level[at - 1].word().filter(|_| keyword.is("mod"))
}

/// `src/a/b.rs` and `src/a/b/mod.rs` are `a::b`; lib.rs and main.rs are the root.
fn module_of(file: &SourceFile) -> Vec<String> {
    let inside = file.path.split_once("/src/").map_or("", |(_, inside)| inside);
    let mut module: Vec<String> = inside.trim_end_matches(".rs").split('/').map(String::from).collect();
    if file.is_root() || file.name() == "mod.rs" {
        module.pop();
    }
    module
}

#[cfg(test)]
mod tests {
    use super::super::source::sample::tree;
    use super::*;

    fn rings(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<(String, &str)> =
            files.iter().map(|(path, text)| (format!("crates/k/src/{path}"), *text)).collect();
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        check(&tree(&files)).into_iter().map(|finding| finding.wrong).collect()
    }

    const B_USES_A: (&str, &str) = ("b.rs", "use crate::a::Thing;\n");

    #[test]
    fn two_modules_that_use_each_other_are_a_ring() {
        let found = rings(&[("a/mod.rs", "\nuse crate::b::Thing;\n"), B_USES_A]);
        let drawn = "a -> b (crates/k/src/a/mod.rs:2), b -> a (crates/k/src/b.rs:1)";
        assert_eq!(found, [format!("modules of `k` use each other in a ring: {drawn}")]);
    }

    #[test]
    fn every_way_to_write_the_use_is_seen() {
        for a in [
            "fn f() -> crate::b::Thing { todo() }",
            "use crate::{c, b::{self, Thing}};",
            "use super::b;",
            "use super::{c, b};",
            "fn f() { println!(\"{}\", crate::b::X); }",
            "mod inner { use super::super::b; }",
            "mod inner { use super::super::{c, b::X}; }",
            "pub(crate) use crate::b::X;",
            "fn f() { for x in crate::b::all() {} }",
        ] {
            assert_eq!(rings(&[("a.rs", a), B_USES_A]).len(), 1, "{a}");
        }
        assert_eq!(rings(&[("a/deep.rs", "use super::super::b;"), B_USES_A]).len(), 1);
        assert_eq!(rings(&[("lib.rs", "mod a { use super::b; }"), B_USES_A]).len(), 1);
    }

    #[test]
    fn what_is_no_use_of_the_module_is_no_ring() {
        for a in [
            "use crate::Thing;",
            "use crate::{Thing, Other};",
            "pub(in crate::b) struct X;",
            "// use crate::b;\nconst X: &str = \"crate::b::X\";",
            "#[cfg(test)]\nmod tests { use crate::b; }",
            "mod b { }\nuse self::b::X;",
            "mod inner { use super::b; }",
            "use other::b;",
            "use crate::*;",
        ] {
            assert_eq!(rings(&[("a.rs", a), B_USES_A]), [""; 0], "{a}");
        }
        assert_eq!(rings(&[("lib.rs", "mod a;\nmod b;\npub use crate::b::X;\npub use a::Y;"), B_USES_A]), [""; 0]);
        assert_eq!(rings(&[("a/x.rs", "use crate::a::y;"), ("a/y.rs", "use super::x;")]), [""; 0]);
        assert_eq!(rings(&[("a/tests.rs", "use crate::b;"), B_USES_A]), [""; 0]);
    }

    #[test]
    fn a_long_ring_is_drawn_once_from_its_least_module() {
        let found = rings(&[("c.rs", "use crate::a;"), ("a.rs", "use crate::b;"), ("b.rs", "use crate::c;")]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("a -> b (") && found[0].contains("b -> c (") && found[0].contains("c -> a ("));
    }

    #[test]
    fn crates_do_not_share_modules() {
        let tree = tree(&[("crates/x/src/a.rs", "use crate::b::T;"), ("crates/y/src/b.rs", "use crate::a::T;")]);
        assert_eq!(check(&tree), []);
    }
}
