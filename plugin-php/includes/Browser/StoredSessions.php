<?php
/**
 * Browser sessions of this site whose contents can be stored as a bundle.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Browser;

defined( 'ABSPATH' ) || exit;

/** Reads the records of sessions and the archives with which they began. */
final class StoredSessions implements ArtifactSessions {

	/**
	 * Creates the reader with its dependencies.
	 *
	 * @param SessionStore $sessions Records of sessions.
	 * @param PrivateFiles $files    Stored archives.
	 */
	public function __construct(
		private readonly SessionStore $sessions,
		private readonly PrivateFiles $files
	) {}

	/**
	 * Returns a session that is not expired and belongs to the current user and site.
	 *
	 * @param string $session_id Id of the session.
	 */
	public function baseline( string $session_id ): SessionBaseline {
		$record = $this->sessions->get( $session_id );
		return new SessionBaseline(
			$record->session_id,
			$record->user_id,
			$record->blog_id,
			$record->baseline,
			[
				'site_id'    => $record->site_id,
				'preview_id' => $record->preview_id,
				'input_hash' => $record->input_hash,
				'isolation'  => $record->isolation,
			]
		);
	}

	/**
	 * Returns the path of a stored archive; null when it is not stored any more.
	 *
	 * @param string $sha256 Its sha256.
	 */
	public function archive( string $sha256 ): ?string {
		return $this->files->path( $sha256 );
	}
}
