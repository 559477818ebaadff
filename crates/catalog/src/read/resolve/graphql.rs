//! GraphQL mappings: a document, where its row's fields are selected, and its variables.
//! Invariant: the document parses; every variable that it declares has a value to come from, and nothing else is sent.

use std::collections::BTreeSet;

use apollo_parser::Parser;
use apollo_parser::cst::{self, CstNode};
use base::similar_names;
use indexmap::IndexMap;

use super::capability::Written;
use super::{Cx, Mistake};
use crate::codes;
use crate::model::{Document, DocumentPiece, Graphql, Param, Shape};
use crate::read::places::Spot;
use crate::read::raw::IdempotencyShape;
use crate::template::Hole;

impl Cx<'_> {
    pub(super) fn graphql(
        &mut self,
        of: &Written<'_>,
        text: &str,
        params: &IndexMap<String, Param>,
    ) -> Option<Graphql> {
        let at = of.at.key("graphql");
        let tree = Parser::new(text).parse();
        if let Some(error) = tree.errors().next() {
            self.unasked(of, at.value(), format!("not a GraphQL document: {}", one_line(error.message())));
            return None;
        }
        let document = tree.document();
        let operation = self.operation(of, &document)?;
        let declared: BTreeSet<String> = operation
            .variable_definitions()
            .into_iter()
            .flat_map(|d| d.variable_definitions())
            .filter_map(|d| Some(d.variable()?.name()?.text().to_string()))
            .collect();
        self.undeclared(of, &document, &declared);
        self.fragments(of, &document);
        let all = of.at.key("variables");
        let mut variables = IndexMap::new();
        for (variable, value) in &of.raw.variables {
            variables.insert(variable.clone(), self.shape(&all.key(variable), of.name, value)?);
        }
        self.variables(of, &declared, params, &mut variables)?;
        let path = self.raw.graphql.clone().unwrap_or_else(|| "/graphql".to_owned());
        Some(Graphql { path, document: self.pieces(&document, text), variables })
    }

    fn unasked(&mut self, of: &Written<'_>, spot: Spot, message: String) {
        self.report(Mistake::new(codes::MAPPING, spot, format!("`{}`: {message}", of.name)));
    }

    /// The one operation of the document, of the kind that the capability is.
    fn operation(&mut self, of: &Written<'_>, document: &cst::Document) -> Option<cst::OperationDefinition> {
        let at = of.at.key("graphql");
        let mut operations = document
            .definitions()
            .filter_map(|d| if let cst::Definition::OperationDefinition(o) = d { Some(o) } else { None });
        let (Some(operation), None) = (operations.next(), operations.next()) else {
            self.unasked(of, at.value(), "write exactly one operation".to_owned());
            return None;
        };
        let kind = operation.operation_type();
        let mutation = kind.as_ref().is_some_and(|t| t.mutation_token().is_some());
        let subscription = kind.as_ref().is_some_and(|t| t.subscription_token().is_some());
        if mutation == of.kind.is_read() || subscription {
            let fix = if of.kind.is_read() { "a read is a `query`" } else { "a write is a `mutation`" };
            let word = if subscription { "subscription" } else { "mutation" };
            self.unasked(of, at.word(word), fix.to_owned());
            return None;
        }
        Some(operation)
    }

    /// Variables that the document uses and does not declare.
    fn undeclared(&mut self, of: &Written<'_>, document: &cst::Document, declared: &BTreeSet<String>) {
        let used = document.syntax().descendants().filter_map(cst::Variable::cast);
        let used: BTreeSet<String> = used.filter_map(|v| Some(v.name()?.text().to_string())).collect();
        for name in used.difference(declared) {
            let near = similar_names(name, declared.iter().map(String::as_str));
            let message = format!("`{}`: `${name}` is not declared; write `query(${name}: String)`", of.name);
            let spot = of.at.key("graphql").word(format!("${name}"));
            self.report(Mistake::new(codes::MAPPING, spot, message).any_of(near));
        }
    }

    /// A spread names an entity, whose needed fields are selected, or a fragment of the document.
    fn fragments(&mut self, of: &Written<'_>, document: &cst::Document) {
        let own: BTreeSet<String> = document
            .definitions()
            .filter_map(|d| if let cst::Definition::FragmentDefinition(f) = d { Some(f) } else { None })
            .filter_map(|f| Some(f.fragment_name()?.name()?.text().to_string()))
            .collect();
        for spread in document.syntax().descendants().filter_map(cst::FragmentSpread::cast) {
            let Some(name) = spread.fragment_name().and_then(|f| f.name()).map(|n| n.text().to_string()) else {
                continue;
            };
            if !own.contains(&name) && !self.raw.entities.contains_key(&name) {
                let near = similar_names(&name, self.raw.entities.keys().map(String::as_str));
                let message = format!("`{}`: `...{name}` is neither an entity nor a fragment of the document", of.name);
                let spot = of.at.key("graphql").word(name);
                self.report(Mistake::new(codes::NAME, spot, message).any_of(near));
            }
        }
    }

    /// Fills what is declared and not said by parameters and parts of the key; `None` where something stays empty.
    fn variables(
        &mut self,
        of: &Written<'_>,
        declared: &BTreeSet<String>,
        params: &IndexMap<String, Param>,
        variables: &mut IndexMap<String, Shape>,
    ) -> Option<()> {
        let paging = of.raw.paging.as_ref();
        let after = "after".to_owned();
        let cursor = paging.filter(|p| p.connection.is_some()).map(|p| p.send.as_ref().unwrap_or(&after));
        let asked =
            paging.map(|p| [p.page.as_ref(), p.offset.as_ref(), p.send.as_ref(), p.size.as_ref().map(|s| &s.send)]);
        let once = match &of.raw.idempotency {
            Some(IdempotencyShape::Body(path)) => path.split('.').next(),
            _ => None,
        };
        let others: BTreeSet<&str> =
            asked.into_iter().flatten().chain([cursor]).flatten().map(String::as_str).chain(once).collect();
        for variable in declared {
            if variables.contains_key(variable) || others.contains(variable.as_str()) {
                continue;
            }
            if !params.contains_key(variable) && !self.is_key(of, variable) {
                let known: Vec<String> = similar_names(variable, params.keys().map(String::as_str));
                let message = format!("`{}`: nothing fills `${variable}`", of.name);
                let spot = of.at.key("graphql").word(format!("${variable}"));
                self.report(Mistake::new(codes::MAPPING, spot, message).any_of(known));
                return None;
            }
            let hole = Hole { param: variable.clone(), part: None, segments: false };
            variables.insert(variable.clone(), Shape::Hole(hole));
        }
        let stray = variables.keys().map(String::as_str).chain(others).find(|v| !declared.contains(*v));
        if let Some(stray) = stray {
            let (said, stray) = (of.raw.variables.contains_key(stray), stray.to_owned());
            let spot = if said { of.at.key("variables").key(&stray).here() } else { of.at.key("graphql").value() };
            self.unasked(of, spot, format!("the document does not declare `${stray}`"));
            return None;
        }
        Some(())
    }

    /// Whether the entity's key has this part and it is no parameter: then the instance fills it.
    fn is_key(&self, of: &Written<'_>, variable: &str) -> bool {
        let keyed =
            of.raw.get.is_some() || of.raw.update.is_some() || of.raw.delete.is_some() || of.raw.action.is_some();
        keyed && of.target.key.iter().any(|part| part == variable)
    }

    /// The text between the spreads that name an entity, and those.
    fn pieces(&self, document: &cst::Document, text: &str) -> Document {
        let mut pieces = Vec::new();
        let mut from = 0;
        for spread in document.syntax().descendants().filter_map(cst::FragmentSpread::cast) {
            let Some(entity) = spread.fragment_name().and_then(|f| f.name()).map(|n| n.text().to_string()) else {
                continue;
            };
            if !self.raw.entities.contains_key(&entity) {
                continue;
            }
            let range = spread.syntax().text_range();
            let (start, end) = (usize::from(range.start()), usize::from(range.end()));
            // The node's range may take in the white space after it.
            let end = start + text[start..end].trim_end().len();
            pieces.push(DocumentPiece::Literal(text[from..start].to_owned()));
            pieces.push(DocumentPiece::Selection(entity));
            from = end;
        }
        pieces.push(DocumentPiece::Literal(text[from..].to_owned()));
        Document { pieces }
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(120).collect()
}
