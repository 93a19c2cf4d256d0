<?php
/**
 * Unpacks WP-CLI into the directory that the first argument names, when a template is built.
 *
 * @package WPCodebox
 */

declare( strict_types=1 );

$phar      = dirname( __DIR__ ) . '/wp-cli.phar';
$directory = $argv[1];

( new Phar( $phar ) )->extractTo( $directory, null, true );

// PHP puts only files that are at least two seconds old into its opcode cache; these get the time of the phar.
$time = (int) filemtime( $phar );
foreach ( new RecursiveIteratorIterator( new RecursiveDirectoryIterator( $directory, FilesystemIterator::SKIP_DOTS ), RecursiveIteratorIterator::SELF_FIRST ) as $path => $entry ) {
	chmod( $path, $entry->isDir() ? 0755 : 0644 );
	touch( $path, $time );
}

echo "unpacked\n";
