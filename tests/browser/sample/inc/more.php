<?php

function sample_more() {
	return 'moore';
}
