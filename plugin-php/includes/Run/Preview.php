<?php
/**
 * Preview of a run in progress.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Run;

use WPCodebox\Native\Runs;

defined( 'ABSPATH' ) || exit;

/** Holds the data of the run's events about its preview, and the visitors' access token, which no event contains. */
final class Preview {

	/** Parameter of the link in which visitors give the token. */
	private const PARAMETER = 'preview_token';

	/** Number of events that are searched at once for one about a preview. */
	private const SEARCHED = 1000;

	/**
	 * Data of the last event about the preview; null before the first.
	 *
	 * @var array<string, mixed>|null
	 */
	private ?array $last = null;

	/**
	 * Creates the preview of a run.
	 *
	 * @param string $public Origin that visitors use; empty when the events of the run name it.
	 * @param string $token  Access token of visitors; empty when they need none.
	 */
	public function __construct( private readonly string $public, #[\SensitiveParameter] private readonly string $token ) {}

	/**
	 * Reads one lifecycle event, and returns it with the link for visitors when it says that the preview is open.
	 *
	 * @param array<string, mixed> $event Lifecycle event.
	 * @return array<string, mixed>
	 */
	public function seen( array $event ): array {
		$data = (array) ( $event['data'] ?? [] );
		if ( 'runtime.observed' !== ( $event['type'] ?? '' ) || 'preview' !== ( $data['type'] ?? '' ) ) {
			return $event;
		}
		$this->last = array_diff_key(
			$data,
			[
				'type' => 1,
				'id'   => 1,
			]
		);
		if ( $this->is_open() ) {
			$event['data'] = $data + [ 'accessUrl' => $this->link() ];
		}
		return $event;
	}

	/**
	 * Returns the preview of any run from the last event about a preview; empty when there is no such event. The visitors'
	 * token is missing, because it is not stored. The search begins at the end of the run's journal, because a preview
	 * opens after the work.
	 *
	 * @param string $site      Id of the site.
	 * @param string $reference Run id or prefix of one.
	 * @param int    $end       Sequence number of the last event.
	 * @return array<string, mixed> `wp-codebox/preview/v1`.
	 */
	public static function recorded( string $site, string $reference, int $end ): array {
		do {
			$preview = new self( '', '' );
			$after   = max( 0, $end - self::SEARCHED );
			foreach ( Runs::events( $site, $reference, $after, self::SEARCHED )['events'] as $event ) {
				$preview->seen( $event );
			}
			$end = $after;
		} while ( [] === $preview->ended() && $end > 0 );
		return $preview->ended();
	}

	/** Checks whether an event has said that the preview is open. */
	public function is_open(): bool {
		return 'open' === ( $this->last['status'] ?? '' );
	}

	/**
	 * Returns the preview for the result of an ended run; empty when it was never opened.
	 *
	 * @return array<string, mixed>
	 */
	public function ended(): array {
		return $this->last ?? [];
	}

	/**
	 * Returns the preview for the handle of an active run: `pending` until it is open, with the link for visitors as soon as
	 * their address is known.
	 *
	 * @return array<string, mixed> `wp-codebox/preview/v1`.
	 */
	public function active(): array {
		$shown  = $this->last ?? [
			'schema' => 'wp-codebox/preview/v1',
			'status' => 'pending',
			'access' => '' === $this->token ? 'open' : 'token',
		];
		$shown += '' === $this->public ? [] : [ 'url' => $this->public ];
		if ( '' !== $this->token ) {
			$shown['accessQuery'] = self::PARAMETER . '=' . $this->token;
		}
		return isset( $shown['url'] ) ? $shown + [ 'accessUrl' => $this->link() ] : $shown;
	}

	/** Returns the link for visitors, with the token if they need one. */
	private function link(): string {
		return (string) ( $this->last['url'] ?? $this->public ) . '/' . ( '' === $this->token ? '' : '?' . self::PARAMETER . '=' . $this->token );
	}
}
