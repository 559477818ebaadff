//! What holds for every call: the ids, the origin, the credential, the headers, the pace.
//! Invariant: a credential does not travel in the clear, except to this very machine, and nothing else takes its place.

use base::{Auth, CatalogId, Origin};

use super::words::{is_path, is_token};
use super::{Cx, Mistake, TOP};
use crate::codes;
use crate::read::places::At;

impl Cx<'_> {
    pub(super) fn ids(&mut self) -> (Option<CatalogId>, Vec<CatalogId>) {
        let raw = self.raw;
        let id = self.catalog_id(&TOP.key("catalog"), &raw.catalog);
        let mut aliases = Vec::new();
        for (n, alias) in raw.aliases.iter().enumerate() {
            let all = TOP.key("aliases");
            let at = all.item(n);
            let Some(alias) = self.catalog_id(&at, alias) else { continue };
            if id.as_ref() == Some(&alias) || aliases.contains(&alias) {
                let message = format!("the alias `{alias}` is there twice, or is the catalog's own id; take it out");
                self.report(Mistake::new(codes::NAME, at.value(), message));
            }
            aliases.push(alias);
        }
        (id, aliases)
    }

    fn catalog_id(&mut self, at: &At<'_>, text: &str) -> Option<CatalogId> {
        CatalogId::parse(text)
            .map_err(|error| self.report(Mistake::new(codes::NAME, at.value(), error.to_string())))
            .ok()
    }

    pub(super) fn origin(&mut self, text: &str) -> Option<(Origin, String)> {
        let at = TOP.key("origin");
        let after_scheme = text.find("://").map_or(0, |at| at + 3);
        let path_at = text[after_scheme..].find('/').map_or(text.len(), |at| after_scheme + at);
        let (origin, path) = text.split_at(path_at);
        let path = path.trim_end_matches('/');
        if !path.is_empty() && (!is_path(path) || path.contains(['{', '}'])) {
            let message = format!("`{}` is not a path that goes before others", path.escape_debug());
            self.report(Mistake::new(codes::ORIGIN, at.value(), message).write("origin: https://api.example.com/v1"));
            return None;
        }
        Origin::parse(origin)
            .map(|origin| (origin, path.to_owned()))
            .map_err(|error| {
                let mistake = Mistake::new(codes::ORIGIN, at.value(), error.to_string());
                self.report(mistake.write("origin: https://api.example.com"));
            })
            .ok()
    }

    pub(super) fn always(&mut self, origin: Option<&(Origin, String)>) {
        let raw = self.raw;
        self.headers_once();
        if let Some(pace) = &raw.pace
            && !(pace.per_second.is_finite() && pace.per_second > 0.0 && pace.concurrent != Some(0))
        {
            let message = "a pace is more than zero a second and at least one call at a time";
            let copy = "pace: {per_second: 5, concurrent: 4}";
            self.report(Mistake::new(codes::MAPPING, TOP.key("pace").here(), message).write(copy));
        }
        let bare = origin.is_some_and(|(_, path)| path.is_empty());
        // An origin with a path may be the endpoint itself.
        let endpoint = |path: &str| if path.is_empty() { !bare } else { is_path(path) && !path.contains(['{', '}']) };
        if let Some(path) = raw.graphql.as_ref().filter(|path| !endpoint(path)) {
            let message = format!("`{}` is not a path", path.escape_debug());
            self.report(Mistake::new(codes::MAPPING, TOP.key("graphql").value(), message).write("graphql: /graphql"));
        }
        if let Some(auth) = &raw.auth {
            self.auth(auth);
            if let Some((origin, _)) = origin {
                self.insecure(&TOP.key("origin"), origin);
            }
        }
    }

    fn headers_once(&mut self) {
        let raw = self.raw;
        let all = TOP.key("headers");
        let mut seen: Vec<String> = Vec::new();
        for (name, value) in &raw.headers {
            let at = all.key(name);
            self.header_name(&at, name);
            if !value.bytes().all(|b| (0x20..0x7f).contains(&b)) || value.trim() != value {
                let message = format!("the value of `{name}` has a character that no header can carry");
                self.report(Mistake::new(codes::MAPPING, at.value(), message));
            }
            self.header_twice(&at, name, &seen);
            seen.push(name.to_ascii_lowercase());
        }
    }

    /// Two headers of one name would leave it to the server which one it reads.
    pub(super) fn header_twice(&mut self, at: &At<'_>, name: &str, seen: &[String]) {
        let credential =
            matches!(&self.raw.auth, Some(Auth::Header { name: own, .. }) if own.eq_ignore_ascii_case(name));
        if credential || seen.contains(&name.to_ascii_lowercase()) {
            let message = format!("the header `{name}` is set twice; take one out");
            self.report(Mistake::new(codes::MAPPING, at.here(), message));
        }
    }

    fn auth(&mut self, auth: &Auth) {
        let top = TOP.key("auth");
        for secret in auth.secret_names() {
            if !is_token(secret) {
                let message = format!("`{}` is not the name of a secret", secret.escape_debug());
                self.report(Mistake::new(codes::MAPPING, top.word(secret), message).write("TRACKER_TOKEN"));
            }
        }
        match auth {
            Auth::Bearer(_) | Auth::Basic { .. } => {}
            Auth::Header { name, prefix, .. } => {
                let form = top.key("header");
                let at = form.key("name");
                // The credential is the one thing that goes into `Authorization`.
                if !name.eq_ignore_ascii_case("authorization") {
                    self.header_name(&at, name);
                }
                if prefix.as_ref().is_some_and(|p| !p.bytes().all(|b| (0x20..0x7f).contains(&b))) {
                    let message = "the prefix has a character that no header can carry";
                    self.report(Mistake::new(codes::MAPPING, form.key("prefix").value(), message));
                }
            }
            Auth::Query { name, .. } => {
                self.query_name(top.key("query").key("name").value(), name);
            }
            Auth::Oauth2 { token_origin, token_path, scopes, .. } => {
                let form = top.key("oauth2");
                self.insecure(&form.key("token_origin"), token_origin);
                if !is_path(token_path) || token_path.contains(['{', '}']) {
                    let message = format!("`{}` is not a path", token_path.escape_debug());
                    let at = form.key("token_path");
                    self.report(Mistake::new(codes::MAPPING, at.value(), message).write("token_path: /oauth/token"));
                }
                for (n, scope) in scopes.iter().enumerate() {
                    if scope.is_empty() || !scope.bytes().all(|b| (0x21..0x7f).contains(&b)) {
                        let message = format!("`{}` is not a scope: it is one word", scope.escape_debug());
                        self.report(Mistake::new(codes::MAPPING, form.key("scopes").item(n).value(), message));
                    }
                }
            }
        }
    }

    fn insecure(&mut self, at: &At<'_>, origin: &Origin) {
        if !origin.is_safe_for_secrets() {
            let message = "credentials must not be sent over plain http; write `https://`";
            self.report(Mistake::new(codes::ORIGIN, at.value(), message));
        }
    }
}
