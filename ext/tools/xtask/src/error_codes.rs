//! Generates the PHP enum of error codes from the Rust enum in `contracts/src/code.rs`.

use crate::generated::Generated;
use wp_codebox_contracts::ErrorCode;

const HEAD: &str = "<?php
/**
 * The stable error codes. Generated from ext/core/contracts/src/code.rs by `cargo xtask generate`.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox;

defined( 'ABSPATH' ) || exit;

/**
 * Every error code of the contract with its HTTP status and exit status. An exception of the
 * extension carries both statuses itself. This table is for the errors that PHP code raises; it
 * works without the extension, too.
 */
enum ErrorCode: string {

";

const TAIL: &str = "\t];

	/** HTTP status for `WP_Error` `data.status`. */
	public function http_status(): int {
		return self::STATUS[ $this->value ][0];
	}

	/** Exit status of a command that fails with this code. */
	public function exit_status(): int {
		return self::STATUS[ $this->value ][1];
	}
}
";

/// Returns the generated file `plugin-php/includes/ErrorCode.php`.
pub fn php_enum() -> Generated {
    let mut text = HEAD.to_owned();
    for code in ErrorCode::ALL {
        text.push_str(&format!("\tcase {code:?} = '{code}';\n"));
    }
    text.push_str("\n\t/** HTTP status and exit status by code. */\n\tprivate const STATUS = [\n");
    for code in ErrorCode::ALL {
        let (http, exit) = (code.http_status(), code.exit_status());
        text.push_str(&format!("\t\t'{code}' => [ {http}, {exit} ],\n"));
    }
    text.push_str(TAIL);
    Generated {
        path: "plugin-php/includes/ErrorCode.php",
        text,
    }
}
