//! Texts from outside on a terminal: names in an archive of a stranger, messages of servers, names of files.

/// Characters that order text from right to left, or end that, and so can show a text in another order than it has.
const ORDER: [char; 12] = [
    '\u{61c}', '\u{200e}', '\u{200f}', '\u{202a}', '\u{202b}', '\u{202c}', '\u{202d}', '\u{202e}',
    '\u{2066}', '\u{2067}', '\u{2068}', '\u{2069}',
];

/// Returns a text for one line of a terminal: control characters, line ends and characters that change the order of text are
/// written as `\u{1b}`.
///
/// # Examples
///
/// ```
/// assert_eq!(service::plain("an actor\u{1b}[2J\n"), "an actor\\u{1b}[2J\\u{a}");
/// ```
pub fn plain(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter.is_control() || ORDER.contains(&letter) {
            true => shown.extend(letter.escape_unicode()),
            false => shown.push(letter),
        }
    }
    shown
}

/// Returns JSON for a terminal: what [`plain`] writes in another way is written as JSON escapes it. Other programs read the same value.
///
/// # Examples
///
/// ```
/// let name = serde_json::json!({ "actor": "one\u{9b}2J" });
/// assert_eq!(service::plain_json(&name), r#"{"actor":"one\u009b2J"}"#);
/// ```
pub fn plain_json(value: &serde_json::Value) -> String {
    let mut shown = String::new();
    // JSON text has such characters only inside of its texts.
    for letter in value.to_string().chars() {
        match letter.is_control() || ORDER.contains(&letter) {
            true => shown.push_str(&format!("\\u{:04x}", u32::from(letter))),
            false => shown.push(letter),
        }
    }
    shown
}

/// Returns a text of several lines for a terminal, as [`plain`] does for each line.
pub fn plain_lines(text: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(plain).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_steers_a_terminal() {
        let every: String = (0..=0x2fff).filter_map(char::from_u32).collect();
        let shown = plain(&every);
        assert!(
            !shown
                .chars()
                .any(|letter| letter.is_control() || ORDER.contains(&letter))
        );
        let value = serde_json::Value::from(every);
        let shown = plain_json(&value);
        assert!(
            !shown
                .chars()
                .any(|letter| letter.is_control() || ORDER.contains(&letter))
        );
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
        assert_eq!(plain("Paco Ŝako ♔ 日本"), "Paco Ŝako ♔ 日本");
        assert_eq!(plain_lines("one\r\n\u{9b}2J\n"), "one\\u{d}\n\\u{9b}2J\n");
    }
}
