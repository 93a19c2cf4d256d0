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
	'contract_digest' => 'edb9576f5ed395f056fa756049fb0394555f771d73043b657a7d8a1c0754d163',
];
