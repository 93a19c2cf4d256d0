--TEST--
Policy returns defaults, reports every issue, checks commands and lists the catalogue
--FILE--
<?php
require __DIR__ . '/fixtures/lib.php';
use WPCodebox\Native\Policy;

echo json_encode( Policy::defaults() ), "\n";
echo json_encode( Policy::defaults( [ 'wordpress.run-php' ] ) ), "\n";
var_dump( Policy::validate( Policy::defaults() ) );
$issues = Policy::validate( [ 'network' => 'maybe', 'commands' => [ '' ] ] );
echo implode( ',', array_column( $issues, 'code' ) ), "\n";
echo implode( ',', array_keys( $issues[0] ) ), "\n";
echo count( Policy::validate( [] ) ), "\n";
$allow = [ 'network' => 'allow' ] + Policy::defaults();
echo json_encode( array_column( Policy::validate( $allow ), 'field', 'code' ) ), "\n";

$policy = Policy::defaults( [ 'wordpress.run-php', 'made-up' ] );
caught( static fn() => Policy::assertCommand( $policy, 'wordpress.run-php' ) );
$e = caught( static fn() => Policy::assertCommand( $policy, 'wordpress.wp-cli' ) );
echo json_encode( $e->data ), ' ', $e->httpStatus, ' ', $e->exitStatus, "\n";
caught( static fn() => Policy::assertCommand( $policy, 'made-up' ) );
caught( static fn() => Policy::assertCommand( [], 'wordpress.run-php' ) );
caught( static fn() => Policy::assertCommand( $allow, 'wordpress.run-php' ) );
caught( static fn() => Policy::assertCommand( $policy, "\xff" ) );
caught( static fn() => Policy::validate( [ 'a', 'list' ] ) );
caught( static fn() => Policy::defaults( [ 5 ] ) );

$catalog = Policy::commands();
$ids     = array_column( $catalog['commands'], 'id' );
echo $catalog['schema'], ' ', count( array_unique( $ids ) ) === count( $ids ) && count( $ids ) > 60 ? 'each once' : count( $ids ), "\n";
echo implode( ' ', array_intersect( [ 'inspect-mounted-inputs', 'command-agent-run', 'wordpress.run-php', 'wordpress.wp-cli', 'wordpress.phpunit', 'wordpress.browser-probe', 'made-up' ], $ids ) ), "\n";
?>
--EXPECT--
{"network":"deny","filesystem":"readwrite-mounts","commands":[],"secrets":"none","approvals":"never"}
{"network":"deny","filesystem":"readwrite-mounts","commands":["wordpress.run-php"],"secrets":"none","approvals":"never"}
array(0) {
}
invalid-network,invalid-filesystem,invalid-command,invalid-secrets,invalid-approvals
code,field,message
5
{"unenforceable":"network"}
no exception
DeniedException runtime-command-disallowed
{"command":"wordpress.wp-cli","allowedCommands":["wordpress.run-php","made-up"]} 403 126
InvalidInputException wp_codebox_command_unknown
InvalidInputException runtime-policy-invalid
DeniedException wp_codebox_policy_unenforceable
InvalidInputException wp_codebox_input_invalid
InvalidInputException wp_codebox_input_invalid
InvalidInputException wp_codebox_input_invalid
wp-codebox/command-catalog/v1 each once
inspect-mounted-inputs command-agent-run wordpress.run-php wordpress.wp-cli wordpress.phpunit wordpress.browser-probe
