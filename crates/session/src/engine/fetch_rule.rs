//! Rules that say which requests `fetch` may make, and with which credential.
//! Invariant: the first matching rule decides, and a request without a rule is refused. The credential is added
//! behind the port; it goes with reads only, unless the rule names other methods, and never over plain HTTP to
//! another machine.

use std::collections::BTreeMap;
use std::fmt;

use base::{Auth, Method, Origin, TenantId};
use serde::Serialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};

/// One rule: `"https://api.example.com"`, or a table with more fields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FetchRule {
    pub origin: Origin,
    pub methods: Vec<Method>,
    /// The tenants whose runs may use the rule. `None` means all.
    pub tenants: Option<Vec<TenantId>>,
    /// The `X-MCP-*` headers that the connection must have sent, with names in lower case.
    pub when: BTreeMap<String, String>,
    /// The credential to add to each request. It holds names of secrets, not their values.
    pub auth: Option<Auth>,
}

/// The properties of a request that rules look at.
pub(crate) struct RuleQuery<'a> {
    pub tenant: &'a TenantId,
    pub headers: &'a BTreeMap<String, String>,
    pub origin: &'a Origin,
    pub method: Method,
}

/// Why no rule matches a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NoMatchingRule<'a> {
    /// The origins that would be allowed.
    Origin(Vec<&'a Origin>),
    /// The methods that would be allowed for this origin.
    Method(Vec<Method>),
}

const ALL: [Method; 5] = [Method::Get, Method::Post, Method::Put, Method::Patch, Method::Delete];
const PREFIX: &str = "x-mcp-";

impl FetchRule {
    /// Returns a rule for all methods of one origin, without a credential.
    pub fn to(origin: Origin) -> Self {
        Self { origin, methods: ALL.to_vec(), tenants: None, when: BTreeMap::new(), auth: None }
    }

    /// Returns the first rule that matches a request.
    pub(crate) fn of<'a>(rules: &'a [Self], asked: &RuleQuery<'_>) -> Result<&'a Self, NoMatchingRule<'a>> {
        let open: Vec<&Self> = rules.iter().filter(|rule| rule.is_open_to(asked)).collect();
        let there: Vec<&Self> = open.iter().copied().filter(|rule| rule.origin == *asked.origin).collect();
        if there.is_empty() {
            let mut origins: Vec<&Origin> = open.iter().map(|rule| &rule.origin).collect();
            origins.dedup();
            return Err(NoMatchingRule::Origin(origins));
        }
        let fits = there.iter().copied().find(|rule| rule.methods.contains(&asked.method));
        fits.ok_or_else(|| NoMatchingRule::Method(there.iter().flat_map(|rule| rule.methods.iter().copied()).collect()))
    }

    fn is_open_to(&self, asked: &RuleQuery<'_>) -> bool {
        let said = |(name, value): (&String, &String)| asked.headers.get(name) == Some(value);
        self.tenants.as_ref().is_none_or(|tenants| tenants.contains(asked.tenant)) && self.when.iter().all(said)
    }
}

impl<'de> Deserialize<'de> for FetchRule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RuleVisitor)
    }
}

/// Reads a rule from a string or a table.
struct RuleVisitor;

/// The fields of a rule written as a table.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleTable {
    origin: Origin,
    #[serde(default)]
    methods: Option<Vec<Method>>,
    #[serde(default)]
    tenants: Option<Vec<TenantId>>,
    #[serde(default)]
    when: BTreeMap<String, String>,
    #[serde(default)]
    auth: Option<Auth>,
}

impl<'de> Visitor<'de> for RuleVisitor {
    type Value = FetchRule;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an origin such as \"https://api.example.com\", or a table with `origin`")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<FetchRule, E> {
        Origin::parse(text).map(FetchRule::to).map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<FetchRule, A::Error> {
        let RuleTable { origin, methods, tenants, when, auth } =
            RuleTable::deserialize(MapAccessDeserializer::new(map))?;
        if let Some(auth) = &auth {
            let token_origin = match auth {
                Auth::Oauth2 { token_origin, .. } => Some(token_origin),
                Auth::Bearer(_) | Auth::Header { .. } | Auth::Query { .. } | Auth::Basic { .. } => None,
            };
            if !origin.is_safe_for_secrets() || token_origin.is_some_and(|origin| !origin.is_safe_for_secrets()) {
                return Err(de::Error::custom("credentials must not be sent over plain http; write `https://`"));
            }
            if let Some(bad) = auth.secret_names().into_iter().find(|name| !ports::secrets::is_name(name)) {
                let rule = ports::secrets::NAME_RULE;
                return Err(de::Error::custom(format!("`{bad}` is not the name of a secret: {rule}")));
            }
        }
        let when: BTreeMap<String, String> =
            when.into_iter().map(|(name, value)| (name.to_ascii_lowercase(), value)).collect();
        if let Some(other) = when.keys().find(|name| !name.starts_with(PREFIX)) {
            return Err(de::Error::custom(format!("`{other}` is not an X-MCP-* header")));
        }
        if methods.as_ref().is_some_and(Vec::is_empty) {
            return Err(de::Error::custom("`methods` is empty; leave it out, or name some"));
        }
        let usual = if auth.is_some() { vec![Method::Get] } else { ALL.to_vec() };
        Ok(FetchRule { origin, methods: methods.unwrap_or(usual), tenants, when, auth })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    struct File {
        fetch: Vec<FetchRule>,
    }

    fn rules(text: &str) -> serde_json::Result<Vec<FetchRule>> {
        serde_json::from_str::<File>(&format!("{{\"fetch\": {text}}}")).map(|file| file.fetch)
    }

    fn which(rules: &[FetchRule], (tenant, team): (&str, &str), (origin, method): (&str, Method)) -> Option<usize> {
        let (tenant, origin) = (TenantId::parse(tenant).unwrap(), Origin::parse(origin).unwrap());
        let headers = BTreeMap::from([("x-mcp-team".to_owned(), team.to_owned())]);
        let asked = RuleQuery { tenant: &tenant, headers: &headers, origin: &origin, method };
        let found = FetchRule::of(rules, &asked).ok()?;
        rules.iter().position(|rule| rule == found)
    }

    #[test]
    fn the_first_matching_rule_decides() {
        let rules = rules(
            r#"["https://open.example",
                {"origin": "https://api.example", "auth": {"bearer": "BLUE"}, "when": {"X-MCP-Team": "blue"}},
                {"origin": "https://api.example", "auth": {"bearer": "ACME"}, "tenants": ["acme"], "methods": ["GET", "POST"]}]"#,
        )
        .unwrap();
        let which = |who, what| which(&rules, who, what);
        assert_eq!(which(("local", "red"), ("https://open.example", Method::Delete)), Some(0));
        assert_eq!(which(("acme", "blue"), ("https://api.example", Method::Get)), Some(1));
        // The first rule has a credential and no `methods`, so it allows reads only.
        assert_eq!(which(("acme", "blue"), ("https://api.example", Method::Post)), Some(2));
        assert_eq!(which(("acme", "red"), ("https://api.example", Method::Get)), Some(2));
        assert_eq!(which(("local", "blue"), ("https://api.example", Method::Post)), None);
        assert_eq!(which(("local", "red"), ("https://api.example", Method::Get)), None);
        assert_eq!(which(("acme", "blue"), ("https://other.example", Method::Get)), None);
    }

    #[test]
    fn an_invalid_rule_is_refused_with_its_reason() {
        for (text, said) in [
            (r#"["api.example"]"#, "an origin starts with"),
            (r#"[7]"#, "an origin such as"),
            (r#"[{"origin": "https://a.example", "token": "X"}]"#, "unknown field `token`"),
            (r#"[{"auth": {"bearer": "X"}}]"#, "missing field `origin`"),
            (r#"[{"origin": "http://a.example", "auth": {"bearer": "X"}}]"#, "plain http"),
            (
                r#"[{"origin": "https://a.example", "auth": {"oauth2": {"token_origin": "http://b.example", "token_path": "/t",
                    "client_id": "I", "client_secret": "S"}}}]"#,
                "plain http",
            ),
            (r#"[{"origin": "https://a.example", "auth": {"bearer": "../X"}}]"#, "not the name of a secret"),
            (r#"[{"origin": "https://a.example", "when": {"cookie": "x"}}]"#, "not an X-MCP-* header"),
            (r#"[{"origin": "https://a.example", "methods": []}]"#, "`methods` is empty"),
            (r#"[{"origin": "https://a.example", "methods": ["BREW"]}]"#, "unknown variant `BREW`"),
        ] {
            let error = rules(text).unwrap_err().to_string();
            assert!(error.contains(said), "{text}: {error}");
        }
        assert!(rules(r#"[{"origin": "http://127.0.0.1:8080", "auth": {"bearer": "X"}}]"#).is_ok(), "on this machine");
    }
}
