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
	'contract_digest' => '0c945fdb69551e96b59d90833389d2ae2ee2b82e5df80c032df806418c48a384',
];
