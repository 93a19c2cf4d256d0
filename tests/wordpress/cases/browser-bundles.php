<?php
/**
 * Bundles opened in a browser sandbox: the present code of the site with the files of the bundle on top of it.
 */

declare(strict_types=1);

use WPCodebox\Apply\ApplyTargets;
use WPCodebox\Browser\ArchiveWriter;
use WPCodebox\Browser\BundleSeed;
use WPCodebox\Browser\PrivateDirectory;
use WPCodebox\Browser\PrivateFiles;
use WPCodebox\Browser\SeedArchives;
use WPCodebox\ExtensionGate;
use WPCodebox\Failure;
use WPCodebox\Host\InstalledCode;
use WPCodebox\Host\Site;
use WPCodebox\Native\Extension;
use WPCodebox\Plugin;
use WPCodebox\Services;
use WPCodebox\Tests\Harness;

use const WPCodebox\VERSION;

return static function ( Harness $t ): void {
	$code      = new InstalledCode();
	$site      = new Site( $code );
	$files     = new PrivateFiles( new PrivateDirectory( $site ), $site->id() );
	$writer    = new ArchiveWriter( $files );
	$services  = new Services( new ExtensionGate( VERSION, Extension::contractDigest() ), Plugin::schemas() );
	$seeds     = new SeedArchives( $code, $writer, new BundleSeed( $services->access, $services->artifacts, new ApplyTargets( $code, $site ), $site, $files ) );
	$unpacked  = static function ( string $sha256 ) use ( $files, $t ): array {
		$zip = new ZipArchive();
		$t->same( true, $zip->open( (string) $files->path( $sha256 ) ) );
		$found = [];
		for ( $index = 0; $index < $zip->numFiles; $index++ ) {
			$found[ $zip->getNameIndex( $index ) ] = (string) $zip->getFromIndex( $index );
		}
		return $found;
	};
	$refused   = static function ( callable $body ): ?Failure {
		try {
			$body();
			return null;
		} catch ( Failure $failure ) {
			return $failure;
		}
	};

	$t->test(
		'a bundle is packed as the code of this site and an overlay with its new contents and deleted files',
		static function () use ( $t, $seeds, $unpacked ): void {
			file_put_contents( WP_PLUGIN_DIR . '/sample/old.txt', "old\n" );
			$made = $t->ok( $t->ability( 'get-artifact', [ 'artifact_id' => $t->made( 'tree' )['run']['run_id'] ] ) )['artifact'];
			$rows = $seeds->pack( [ [ 'kind' => 'bundle', 'slug' => $made['artifact_id'] ] ] );
			$t->same( [ [ 'plugins/sample', '/wordpress/wp-content/plugins/sample' ] ], array_map( static fn( array $row ): array => [ $row['target'], $row['path'] ], $rows ) );
			$base    = $unpacked( $rows[0]['archive']['sha256'] );
			$overlay = $unpacked( $rows[0]['overlay']['sha256'] );
			$t->same( (string) file_get_contents( WP_PLUGIN_DIR . '/sample/sample.php' ), $base['sample.php'], 'the code of the site' );
			$changed = WPCodebox\Apply\ArtifactService::changed_files( $made );
			$kept    = array_values( array_filter( $changed, static fn( array $entry ): bool => 'deleted' !== $entry['status'] ) );
			$gone    = array_values( array_filter( $changed, static fn( array $entry ): bool => 'deleted' === $entry['status'] ) );
			$names   = array_column( $kept, 'relativePath' );
			sort( $names );
			$t->same( $names, array_keys( $overlay ) );
			foreach ( $kept as $entry ) {
				$t->same( $entry['afterSha256'], hash( 'sha256', $overlay[ $entry['relativePath'] ] ), $entry['path'] );
			}
			$t->same( array_map( static fn( array $entry ): string => 'plugins/sample/' . $entry['relativePath'], $gone ), $rows[0]['overlay']['deleted'] );
			$t->same( [ [ 'plugins/sample/old.txt' ], true ], [ $rows[0]['overlay']['deleted'], isset( $overlay['deep/er/new.sh'] ) ] );
			unlink( WP_PLUGIN_DIR . '/sample/old.txt' );
		}
	);
	$t->test(
		'a bundle that no longer fits the code of the site is refused with a sentence',
		static function () use ( $t, $seeds, $refused ): void {
			$made = $t->made( 'fix' );
			$pack = static fn() => $seeds->pack( [ [ 'kind' => 'bundle', 'slug' => $made['run']['run_id'] ] ] );
			$t->same( null, $refused( $pack ), 'positive control' );
			$path = WP_PLUGIN_DIR . '/sample/sample.php';
			$text = (string) file_get_contents( $path );
			file_put_contents( $path, $text . "\n// Changed later.\n" );
			try {
				$failure = $refused( $pack );
				$t->same( 'wp_codebox_apply_conflict', $failure?->error_code );
				$t->contains( 'changed since the run of this bundle started from it', (string) $failure?->getMessage() );
			} finally {
				file_put_contents( $path, $text );
			}
		}
	);
	$t->test(
		'an altered and an unknown bundle are refused',
		static function () use ( $t, $seeds, $refused ): void {
			$made = $t->made( 'fix' );
			$pack = static fn() => $seeds->pack( [ [ 'kind' => 'bundle', 'slug' => $made['run']['run_id'] ] ] );
			$t->same( null, $refused( $pack ), 'positive control' );
			$t->tamper( $made );
			try {
				$failure = $refused( $pack );
			} catch ( WPCodebox\Native\Exception $exception ) {
				$failure = Failure::from( $exception );
			}
			$t->same( 'wp_codebox_artifact_verification_failed', $failure?->error_code );
			try {
				$failure = $refused( static fn() => $seeds->pack( [ [ 'kind' => 'bundle', 'slug' => 'artifact-absent' ] ] ) );
			} catch ( WPCodebox\Native\Exception $exception ) {
				$failure = Failure::from( $exception );
			}
			$t->same( 404, $failure?->http_status );
		}
	);
};
