//! [`Slots`]: parts of a page that change.

use std::{borrow::Cow, collections::BTreeMap};

use maud::{Markup, PreEscaped, html};

/// Changing parts of a page, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slots(BTreeMap<Cow<'static, str>, String>);

impl Slots {
    /// Adds a part.
    #[must_use]
    pub fn with(mut self, name: impl Into<Cow<'static, str>>, content: Markup) -> Self {
        self.0.insert(name.into(), content.into_string());
        self
    }

    /// The place of a part in a page, with its present content.
    pub fn show(&self, name: &str) -> Markup {
        let content = self.0.get(name).cloned().unwrap_or_default();
        html! { div.slot data-slot=(name) { (PreEscaped(content)) } }
    }

    /// Parts that differ from those of `before`, as a JSON object of HTML.
    pub fn since(&self, before: &Self) -> Option<String> {
        let changed: BTreeMap<_, _> = self
            .0
            .iter()
            .filter(|(name, content)| before.0.get(*name) != Some(*content))
            .collect();
        if changed.is_empty() {
            return None;
        }
        serde_json::to_string(&changed).ok()
    }

    /// All parts, as a JSON object of HTML.
    pub fn json(&self) -> axum::Json<&BTreeMap<Cow<'static, str>, String>> {
        axum::Json(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_changed_parts_are_sent() {
        let before = Slots::default()
            .with("one", html! { "1" })
            .with("two", html! { b { "2" } });
        let after = before.clone().with("two", html! { b { "3 < 4" } });
        assert_eq!(after.since(&before).unwrap(), r#"{"two":"<b>3 &lt; 4</b>"}"#);
        assert_eq!(after.since(&after), None);
    }
}
