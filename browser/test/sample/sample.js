document.documentElement.dataset.sample = 'first';
