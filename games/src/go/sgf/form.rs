//! The form of SGF: a tree of nodes, each with properties.

use super::SgfError;

/// One value of a property.
pub(super) struct Property {
    pub name: String,
    pub value: String,
}

/// Returns the properties of the main line: those before the first end of a variation, because the first variation is always the main
/// one.
///
/// # Errors
/// [`SgfError::Form`] with the first fault.
pub(super) fn main_line(text: &str) -> Result<Vec<Property>, SgfError> {
    let begin = text.find("(;").or_else(|| text.find('('));
    let begin = begin.ok_or(SgfError::Form {
        at: 0,
        reason: "there is no `(` that begins a game",
    })?;
    let mut letters = text.char_indices().skip_while(|(at, _)| *at <= begin);
    let (mut found, mut name, mut is_complete) = (Vec::new(), String::new(), true);
    while let Some((at, letter)) = letters.next() {
        match letter {
            ')' => return Ok(found),
            '(' | ';' => name.clear(),
            '[' if name.is_empty() => {
                return Err(SgfError::Form {
                    at,
                    reason: "a value has no property",
                });
            }
            '[' => {
                let mut value = String::new();
                loop {
                    match letters.next().map(|(_, letter)| letter) {
                        Some(']') => break,
                        Some('\\') => value.extend(letters.next().map(|(_, letter)| letter)),
                        Some(letter) => value.push(letter),
                        None => {
                            return Err(SgfError::Form {
                                at: text.len(),
                                reason: "a value has no end",
                            });
                        }
                    }
                }
                found.push(Property {
                    name: name.clone(),
                    value,
                });
                is_complete = true;
            }
            'A'..='Z' => {
                // A letter after a value begins the next property.
                if is_complete {
                    name.clear();
                    is_complete = false;
                }
                name.push(letter);
            }
            // Older files write names with small letters in between.
            'a'..='z' => {}
            _ if letter.is_whitespace() => {}
            _ => {
                return Err(SgfError::Form {
                    at,
                    reason: "a letter is outside of a value",
                });
            }
        }
    }
    Err(SgfError::Form {
        at: text.len(),
        reason: "there is no `)` that ends the game",
    })
}
