<?php
/**
 * Requests that a connector of this site carries out for a sandbox in a browser.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Connector;

use Throwable;
use WP_Error;
use WPCodebox\AuditTrail;
use WPCodebox\ErrorCode;
use WPCodebox\ExtensionGate;
use WPCodebox\Failure;
use WPCodebox\Model\Connector;
use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/**
 * The canonical path: the connector is resolved here, its credentials go to the plugin of the site
 * that handles such requests, and what that answers is searched for them. Whatever goes wrong
 * after the request was understood is an answer that says `failed-closed`.
 */
final class ConnectorRequests {

	public const EVENT = 'connector-request';

	/** Largest `payload`, `session` and `context` together, bytes of JSON. */
	private const MOST_BYTES = 1048576;

	/**
	 * Wires the requests.
	 *
	 * @param ExtensionGate   $gate    Extension check.
	 * @param TrustedCallers  $callers Who asks.
	 * @param ConnectorSource $source  Connectors.
	 * @param AuditTrail      $audit   Audit log.
	 */
	public function __construct(
		private readonly ExtensionGate $gate,
		private readonly TrustedCallers $callers,
		private readonly ConnectorSource $source,
		private readonly AuditTrail $audit
	) {}

	/**
	 * Carries one request out.
	 *
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed> `wp-codebox/browser-connector-response/v1`.
	 * @throws Failure `wp_codebox_browser_connector_request_invalid`, and what keeps it from being logged.
	 */
	public function request( array $input ): array {
		$this->gate->check();
		$asked     = $this->asked( $input );
		$decision  = $this->callers->admitted( Scope::RequestConnector, $input['authorization'] ?? null )->to_array();
		$connector = null;
		try {
			$connector = $this->source->resolve( $asked['connector'], $asked + [ 'scope' => Scope::RequestConnector->value ], $input );
			$asked     = $this->source->bound( $connector, $asked );
			$this->source->usable( $connector );
			$request = $this->handed( $asked, $input, $connector, $decision );
			$this->audit->write( self::EVENT, [ 'status' => 'started' ] + $this->record( $asked, $connector, $decision ) );
			$response = $this->handle( $request, $input, array_values( $connector->values() ) );
		} catch ( Failure $failure ) {
			if ( ErrorCode::AuditFailed->value === $failure->error_code ) {
				throw $failure;
			}
			$this->audit->write(
				self::EVENT,
				[
					'status' => 'failure',
					'error'  => $failure->recorded(),
				] + $this->record( $asked, $connector, $decision )
			);
			return $this->envelope( $asked, $connector, $decision, [ 'error' => array_diff_key( $failure->to_array(), [ 'data' => 1 ] ) ] );
		}
		$this->audit->write( self::EVENT, [ 'status' => 'success' ] + $this->record( $asked, $connector, $decision ) );
		return $this->envelope( $asked, $connector, $decision, [ 'response' => $response ] );
	}

	/**
	 * What is asked for, by which connector.
	 *
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array{connector: string, provider: string, model: string, operation: string}
	 */
	private function asked( array $input ): array {
		$asked = [];
		foreach ( [ 'connector', 'provider', 'model', 'operation' ] as $field ) {
			$asked[ $field ] = trim( (string) ( $input[ $field ] ?? '' ) );
		}
		foreach ( [ 'connector', 'operation' ] as $field ) {
			if ( '' === $asked[ $field ] ) {
				/* translators: %s: name of a field. */
				throw Failure::because( ErrorCode::BrowserConnectorRequestInvalid, Sentence::of( __( 'A connector request needs "%s"; name a connector of this site and what it is to do.', 'codebox' ), $field ) );
			}
		}
		$free = array_intersect_key( $input, array_flip( [ 'payload', 'session', 'context' ] ) );
		Redaction::plain( $free, ErrorCode::BrowserConnectorRequestInvalid, __( 'payload, session and context', 'codebox' ), self::MOST_BYTES );
		return $asked;
	}

	/**
	 * The request as the handler gets it: the only place where values leave their wrapper.
	 *
	 * @param array<string, string> $asked     What is asked for.
	 * @param array<string, mixed>  $input     Input of the ability.
	 * @param Connector             $connector The connector.
	 * @param array<string, mixed>  $decision  Who asks.
	 * @return array<string, mixed> `wp-codebox/browser-connector-request/v1`.
	 */
	private function handed( array $asked, array $input, Connector $connector, array $decision ): array {
		return [ 'schema' => 'wp-codebox/browser-connector-request/v1' ] + $asked + [
			'payload'     => (array) ( $input['payload'] ?? [] ),
			'session'     => (array) ( $input['session'] ?? [] ),
			'context'     => (array) ( $input['context'] ?? [] ),
			'credentials' => $connector->values(),
			'audit'       => $this->about( $asked, $connector, $decision ),
		];
	}

	/**
	 * Asks the host plugin.
	 *
	 * @param array<string, mixed> $request `wp-codebox/browser-connector-request/v1`.
	 * @param array<string, mixed> $input   Input of the ability.
	 * @param list<string>         $values  What must not come back.
	 * @return array<mixed> The response, cleaned.
	 */
	private function handle( #[\SensitiveParameter] array $request, array $input, #[\SensitiveParameter] array $values ): array {
		try {
			/**
			 * Carries a connector request out. The request holds the credentials of the connector by
			 * environment name: use them towards the connector's own provider and nowhere else. They
			 * must not be in the answer; what is found of them there is replaced.
			 *
			 * @param array<string, mixed>|WP_Error|null $response The answer of an earlier handler: return it unchanged when it is not null.
			 * @param array{schema: string, connector: string, provider: string, model: string, operation: string, payload: array<string, mixed>, session: array<string, mixed>, context: array<string, mixed>, credentials: array<string, string>, audit: array<string, mixed>} $request What to do.
			 * @param array<string, mixed> $input Input of the ability, as it came.
			 */
			$answer = apply_filters( 'wp_codebox_browser_connector_request', null, $request, $input );
		} catch ( Throwable $thrown ) {
			throw HostAnswer::thrown( $thrown, ErrorCode::BrowserConnectorHandlerFailed, __( 'The plugin that handles connector requests failed; the PHP error log says where.', 'codebox' ) );
		}
		if ( null === $answer ) {
			throw Failure::because(
				ErrorCode::BrowserConnectorHandlerMissing,
				__( 'No plugin of this site handles connector requests.', 'codebox' ),
				[ __( 'A host plugin answers the filter wp_codebox_browser_connector_request; docs/connector-requests.md describes it.', 'codebox' ) ]
			);
		}
		return HostAnswer::response( $answer, $values, ErrorCode::BrowserConnectorHandlerFailed, ErrorCode::BrowserConnectorResponseInvalid );
	}

	/**
	 * The answer.
	 *
	 * @param array<string, string> $asked     What is asked for.
	 * @param Connector|null        $connector The connector, if it came that far.
	 * @param array<string, mixed>  $decision  Who asked.
	 * @param array<string, mixed>  $outcome   `response` or `error`.
	 * @return array<string, mixed>
	 */
	private function envelope( array $asked, ?Connector $connector, array $decision, array $outcome ): array {
		$good = isset( $outcome['response'] );
		return [
			'success' => $good,
			'schema'  => 'wp-codebox/browser-connector-response/v1',
			'status'  => $good ? 'completed' : 'failed-closed',
		] + $asked + $outcome + [
			'credentials' => ConnectorSource::credentials( $connector ),
			'audit'       => $this->about( $asked, $connector, $decision ),
		];
	}

	/**
	 * What may be known of the request everywhere.
	 *
	 * @param array<string, string> $asked     What is asked for.
	 * @param Connector|null        $connector The connector, if it came that far.
	 * @param array<string, mixed>  $decision  Who asks.
	 * @return array<string, mixed> `wp-codebox/browser-connector-audit/v1`.
	 */
	private function about( array $asked, ?Connector $connector, array $decision ): array {
		return [
			'schema'           => 'wp-codebox/browser-connector-audit/v1',
			'operation'        => $asked['operation'],
			'authorization'    => $decision,
			'secrets_redacted' => true,
			'generated_by'     => 'wp-codebox/browser-connector-request',
		] + ConnectorSource::summary( $connector );
	}

	/**
	 * The request as one line of the audit log.
	 *
	 * @param array<string, string> $asked     What is asked for.
	 * @param Connector|null        $connector The connector, if it came that far.
	 * @param array<string, mixed>  $decision  Who asks.
	 * @return array<string, mixed>
	 */
	private function record( array $asked, ?Connector $connector, array $decision ): array {
		return $asked + [ 'authorization' => $decision ] + ConnectorSource::summary( $connector );
	}
}
