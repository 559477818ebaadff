//! Resolves the top level of a catalog: the ids, origin, credential, headers, pace and failure flag, which apply to
//! every call.
//! Invariants: a credential is sent only over TLS or to this machine. No header or parameter of the catalog has the
//! name of the credential's header or parameter.

use base::{Auth, CatalogId, Origin};

use super::text_rules::{is_path, is_token};
use super::{CatalogResolver, Mistake, TOP};
use crate::codes;
use crate::model::Failure;
use crate::read::spans::YamlPath;

impl CatalogResolver<'_> {
    /// Returns the catalog's id, or `None` if the id is invalid, and the valid aliases.
    pub(super) fn resolve_ids(&mut self) -> (Option<CatalogId>, Vec<CatalogId>) {
        let raw = self.raw;
        let id = self.parse_catalog_id(&TOP.key("catalog"), &raw.catalog);
        let mut aliases = Vec::new();
        for (n, alias) in raw.aliases.iter().enumerate() {
            let all = TOP.key("aliases");
            let at = all.item(n);
            let Some(alias) = self.parse_catalog_id(&at, alias) else { continue };
            if id.as_ref() == Some(&alias) || aliases.contains(&alias) {
                let message = format!("the alias `{alias}` is there twice, or is the catalog's own id; take it out");
                self.report(Mistake::new(codes::NAME, at.on_value(), message));
            }
            aliases.push(alias);
        }
        (id, aliases)
    }

    fn parse_catalog_id(&mut self, at: &YamlPath<'_>, text: &str) -> Option<CatalogId> {
        CatalogId::parse(text)
            .map_err(|error| self.report(Mistake::new(codes::NAME, at.on_value(), error.to_string())))
            .ok()
    }

    /// Splits the text of `origin` into the origin and the base path. Returns `None` if one of them is invalid.
    pub(super) fn resolve_origin(&mut self, text: &str) -> Option<(Origin, String)> {
        let at = TOP.key("origin");
        let after_scheme = text.find("://").map_or(0, |at| at + 3);
        let path_start = text[after_scheme..].find('/').map_or(text.len(), |at| after_scheme + at);
        let (origin, path) = text.split_at(path_start);
        let path = path.trim_end_matches('/');
        if !path.is_empty() && (!is_path(path) || path.contains(['{', '}'])) {
            let message = format!("`{}` is not a path that goes before others", path.escape_debug());
            self.report(
                Mistake::new(codes::ORIGIN, at.on_value(), message).with_copy("origin: https://api.example.com/v1"),
            );
            return None;
        }
        Origin::parse(origin)
            .map(|origin| (origin, path.to_owned()))
            .map_err(|error| {
                let mistake = Mistake::new(codes::ORIGIN, at.on_value(), error.to_string());
                self.report(mistake.with_copy("origin: https://api.example.com"));
            })
            .ok()
    }

    /// Checks the headers, the pace, the GraphQL endpoint and the credential.
    pub(super) fn check_settings(&mut self, origin: Option<&(Origin, String)>) {
        let raw = self.raw;
        self.check_common_headers();
        if let Some(pace) = &raw.pace
            && !(pace.per_second.is_finite() && pace.per_second > 0.0 && pace.concurrent != Some(0))
        {
            let message = "a pace is more than zero a second and at least one call at a time";
            let copy = "pace: {per_second: 5, concurrent: 4}";
            self.report(Mistake::new(codes::MAPPING, TOP.key("pace").on_key(), message).with_copy(copy));
        }
        let path_may_be_empty = !origin.is_some_and(|(_, path)| path.is_empty());
        // The GraphQL endpoint may be the base path itself, so its path may be empty if there is a base path.
        let is_endpoint =
            |path: &str| if path.is_empty() { path_may_be_empty } else { is_path(path) && !path.contains(['{', '}']) };
        if let Some(path) = raw.graphql.as_ref().filter(|path| !is_endpoint(path)) {
            let message = format!("`{}` is not a path", path.escape_debug());
            self.report(
                Mistake::new(codes::MAPPING, TOP.key("graphql").on_value(), message).with_copy("graphql: /graphql"),
            );
        }
        if let Some(auth) = &raw.auth {
            self.check_auth(auth);
            if let Some((origin, _)) = origin {
                self.check_secure(&TOP.key("origin"), origin);
            }
        }
    }

    /// Checks the headers that the catalog adds to every request.
    fn check_common_headers(&mut self) {
        let raw = self.raw;
        let all = TOP.key("headers");
        let mut earlier: Vec<String> = Vec::new();
        for (name, value) in &raw.headers {
            let at = all.key(name);
            self.check_header_name(&at, name);
            if !value.bytes().all(|b| (0x20..0x7f).contains(&b)) || value.trim() != value {
                let message = format!("the value of `{name}` has a character that no header can carry");
                self.report(Mistake::new(codes::MAPPING, at.on_value(), message));
            }
            self.check_header_is_new(&at, name, &earlier);
            earlier.push(name.to_ascii_lowercase());
        }
    }

    /// Reports a header with the name of the credential's header or of a header in `earlier` (names in lower case).
    /// If a request had two headers of one name, the server would decide which header it reads.
    pub(super) fn check_header_is_new(&mut self, at: &YamlPath<'_>, name: &str, earlier: &[String]) {
        let is_credential =
            matches!(&self.raw.auth, Some(Auth::Header { name: own, .. }) if own.eq_ignore_ascii_case(name));
        if is_credential || earlier.contains(&name.to_ascii_lowercase()) {
            let message = format!("the header `{name}` is set twice; take one out");
            self.report(Mistake::new(codes::MAPPING, at.on_key(), message));
        }
    }

    /// Checks the names and addresses of the credential. A catalog contains the names of secrets and no values.
    fn check_auth(&mut self, auth: &Auth) {
        let top = TOP.key("auth");
        for secret in auth.secret_names() {
            if !is_token(secret) {
                let message = format!("`{}` is not the name of a secret", secret.escape_debug());
                self.report(Mistake::new(codes::MAPPING, top.on_word(secret), message).with_copy("TRACKER_TOKEN"));
            }
        }
        match auth {
            Auth::Bearer(_) | Auth::Basic { .. } => {}
            Auth::Header { name, prefix, .. } => {
                let form = top.key("header");
                let at = form.key("name");
                // Only the credential may be sent in the header `Authorization`.
                if !name.eq_ignore_ascii_case("authorization") {
                    self.check_header_name(&at, name);
                }
                if prefix.as_ref().is_some_and(|p| !p.bytes().all(|b| (0x20..0x7f).contains(&b))) {
                    let message = "the prefix has a character that no header can carry";
                    self.report(Mistake::new(codes::MAPPING, form.key("prefix").on_value(), message));
                }
            }
            Auth::Query { name, .. } => {
                self.check_query_name(top.key("query").key("name").on_value(), name);
            }
            Auth::Oauth2 { token_origin, token_path, scopes, .. } => {
                let form = top.key("oauth2");
                self.check_secure(&form.key("token_origin"), token_origin);
                if !is_path(token_path) || token_path.contains(['{', '}']) {
                    let message = format!("`{}` is not a path", token_path.escape_debug());
                    let at = form.key("token_path");
                    self.report(
                        Mistake::new(codes::MAPPING, at.on_value(), message).with_copy("token_path: /oauth/token"),
                    );
                }
                for (n, scope) in scopes.iter().enumerate() {
                    if scope.is_empty() || !scope.bytes().all(|b| (0x21..0x7f).contains(&b)) {
                        let message = format!("`{}` is not a scope: it is one word", scope.escape_debug());
                        self.report(Mistake::new(codes::MAPPING, form.key("scopes").item(n).on_value(), message));
                    }
                }
            }
        }
    }

    fn check_secure(&mut self, at: &YamlPath<'_>, origin: &Origin) {
        if !origin.is_safe_for_secrets() {
            let message = "credentials must not be sent over plain http; write `https://`";
            self.report(Mistake::new(codes::ORIGIN, at.on_value(), message));
        }
    }

    pub(super) fn resolve_failure(&mut self) -> Option<Failure> {
        let raw = self.raw.failure.as_ref()?;
        let at = TOP.key("failure");
        for (key, path) in [("flag", &raw.flag), ("says", &raw.says)] {
            if path.is_empty() {
                let message = format!("`{key}` of `failure` is empty; write the path of it in the answer");
                self.report(Mistake::new(codes::SHAPE, at.key(key).on_value(), message));
            }
        }
        Some(Failure {
            flag: self.parse_data_path(&at.key("flag"), &raw.flag),
            message: self.parse_data_path(&at.key("says"), &raw.says),
        })
    }
}
