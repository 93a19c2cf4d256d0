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
	'contract_digest' => '5cafc6a0c0e8dd037d27c3e48df96dd410e8dd9ebbd2a31b20968166abcd365a',
];
