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
	'contract_digest' => '474df5377bdfbf3ed25b4ad1477cb32ee1fa6296aed899f4576d2a595c08bc04',
];
