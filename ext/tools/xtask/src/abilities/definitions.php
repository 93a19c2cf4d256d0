<?php
/**
 * Prints the definitions in `abilities/definitions/` as JSON, for `cargo xtask generate`.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

define( 'ABSPATH', '/' );

// phpcs:ignore -- the definitions are read in English and without WordPress.
function __( string $text ): string {
	return $text;
}

$root = $argv[1];
require $root . '/plugin-php/includes/Autoload.php';
WPCodebox\Autoload::register( $root . '/plugin-php' );

$rows = [];
foreach ( glob( $root . '/abilities/definitions/*.php' ) as $file ) {
	$definition = require $file;
	$rows[]     = [
		'name'           => basename( $file, '.php' ),
		'description'    => $definition['description'],
		'input_schema'   => $definition['input_schema'],
		'output_schemas' => (array) $definition['output_schema'],
		'allowed'        => [ ...(array) $definition['capability'], ...(array) ( $definition['scope'] ?? [] ) ],
	];
}
echo json_encode( $rows, JSON_THROW_ON_ERROR | JSON_UNESCAPED_UNICODE | JSON_UNESCAPED_SLASHES );
