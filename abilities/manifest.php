<?php
/**
 * The digest of all schemas. The extension carries the digest of the schemas it was built
 * from, and the two must be equal. `cargo xtask generate` rewrites it.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

defined( 'ABSPATH' ) || exit;

return [
	'contract_digest' => 'f79ad9535ca0e5e4428ea820bb09c7f75d67687aba030c336fc5a00d209d76ad',
];
